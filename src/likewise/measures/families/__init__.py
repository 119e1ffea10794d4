"""The measures, one file per family. The registry imports these files when a name is first looked up."""
