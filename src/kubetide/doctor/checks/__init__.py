"""One check per file: ``find(snapshot)`` yields findings."""
