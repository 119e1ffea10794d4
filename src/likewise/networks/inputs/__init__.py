"""What a network is shown: transforms of images, tokenizers, feature extractors, precision, subnetworks."""
