"""What each group could do for the pods, and which of them grow."""
