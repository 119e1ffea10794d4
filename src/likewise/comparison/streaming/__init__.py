"""Rows of all layers of networks, batch by batch, within a limit of memory. Imports `views` and `measures`."""
