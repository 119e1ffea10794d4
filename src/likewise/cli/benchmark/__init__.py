"""Evaluate measures on networks whose similarity is known."""
