"""What comes next: the load of the past in, what it will be at least out. Pure, in columns."""
