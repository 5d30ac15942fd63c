"""Which nodes are unneeded now, and why the others are not."""
