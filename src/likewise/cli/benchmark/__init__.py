"""Hold measures against networks whose likeness is known: which may be trusted?"""
