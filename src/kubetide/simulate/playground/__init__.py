"""Changes by a person while an embedded cluster runs: its load, and its faults."""
