"""Decision records on disk: writing, indexing and reading, also while they grow."""
