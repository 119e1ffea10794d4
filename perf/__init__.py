"""Benchmarks: what the library costs in CPU seconds and memory, beside targets and peers."""

import os

# Idle threads would spin, which counts as CPU time. This must be said before numpy and torch are imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2 to this power cycles; 26 by default
