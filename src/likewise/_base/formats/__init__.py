"""Readers of file formats that anybody writes: numpy arrays, torch files. Sizes and checksums are checked first."""
