"""Hold measures against networks whose likeness is known."""
