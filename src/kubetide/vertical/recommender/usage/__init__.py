"""Usage as decaying histograms, a row per container, and their checkpoints."""
