"""What every reader, long job and command has to pass: each registers a small example, and the rest is derived.

`python -m tests.contract.battery` runs all of it and prints the counts; a seeded selection is in `make test`.
"""
