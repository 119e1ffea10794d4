"""What is where in a network: its classifier and what it is given, its blocks, the axis of its channels."""
