"""Engines: where tasks run. Each takes a function and an iterable of tasks, and knows nothing of what they compute."""

from likewise.work.engines.base import Engine, Local, Remote, WorkerDied, engine_of, engine_settings

__all__ = ["Engine", "Local", "Remote", "WorkerDied", "engine_of", "engine_settings"]
