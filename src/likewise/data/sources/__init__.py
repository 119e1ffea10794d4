"""Named datasets, one file per kind; each is a loader under `@data_source`."""
