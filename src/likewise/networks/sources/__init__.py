"""Where networks come from: one file per prefix of an address, found by the registry in `base`."""
