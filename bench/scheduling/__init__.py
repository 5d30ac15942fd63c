"""CPU time of the scheduling operations that a tick repeats; ``python -m bench.scheduling --help``."""
