"""Where work runs and where results are kept, for every long job.

Engines take tasks and know nothing of measures or trainings; the store keeps scores and artifacts by content.
The room imports `_base`.
"""
