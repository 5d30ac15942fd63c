"""Decision records on disk: how they are written, indexed and read, also while they grow."""
