"""What is said of a scale-up: events, and answers on the board."""
