"""What the node loop records: deltas, whole states, and checkpoints between them."""
