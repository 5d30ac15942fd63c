"""Templates: what a new node of each group looks like, the source of that, and all templates side by side."""
