"""The panels of a report: one file per question."""
