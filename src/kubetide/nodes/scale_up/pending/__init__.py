"""What is asked for, and what of it fits already."""
