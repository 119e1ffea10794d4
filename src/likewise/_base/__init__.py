"""What every room may use: files, hashing, arrays, threads, registries, progress.

Helpers that know nothing of networks, data or measures. The room imports `errors`.
"""
