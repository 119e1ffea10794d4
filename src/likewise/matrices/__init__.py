"""Results with names: a score, a similarity matrix, a layer matrix; how they are shown, drawn and saved.

They carry what they need to be read (direction, bounds, reasons) and know no measure and no network.
The room imports `_base`.
"""
