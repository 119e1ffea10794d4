"""Benchmark results: one frame with one loader; tables, ranks, advice and the comparison with the paper over it."""
