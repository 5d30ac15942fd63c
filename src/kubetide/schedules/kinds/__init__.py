"""The kinds of time tables: one file each, and the registry."""
