"""Comparisons that were stopped: what they left behind, and how to read it."""
