"""Results with names: scores, nulls, intervals, matrices of networks and of layers, as text, pictures and files.

They carry what they need to be read (direction, bounds, reasons) and know no measure and no network.
The room imports `_base`.
"""
