"""The inspector inside other people's training loops."""
