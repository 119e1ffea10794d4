"""A place for measures: cached views of networks of known similarity, rows of measures on them, and their standings."""
