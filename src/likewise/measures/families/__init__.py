"""The measures, one or a few files per family. The registry imports them when a name is looked up."""
