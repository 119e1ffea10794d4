"""Recordings: small files that stand for a network on a probe, so that a later one is compared with it without it.

`sketches` turns rows into short vectors, `recording` holds them and is the file, `recorder` makes them of a network.
"""
