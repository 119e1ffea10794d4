"""Benchmarks: what the library costs in CPU seconds and memory, beside the targets and its peers."""
