"""Usage as decaying histograms, a row for each container, and their checkpoints."""
