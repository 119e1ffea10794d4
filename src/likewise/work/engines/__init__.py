"""Engines: the cores of this machine, processes, Dask, Ray or any executor."""
