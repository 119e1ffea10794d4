"""Studies: long runs whose outcome stands in `docs/`."""
