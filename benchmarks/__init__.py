"""Benchmarks: what the library costs in CPU seconds and memory, beside targets and peers."""
