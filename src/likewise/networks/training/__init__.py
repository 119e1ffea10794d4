"""Training: settings, one loop for every domain, augmentation, and checkpoints to resume from."""
