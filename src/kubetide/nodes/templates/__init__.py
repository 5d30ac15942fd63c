"""What a new node of each group looks like, who says so, and all templates side by side."""
