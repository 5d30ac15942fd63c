"""One check a file: ``find(snapshot)`` yields findings."""
