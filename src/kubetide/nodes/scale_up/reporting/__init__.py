"""Reports of a scale-up: events, and answers on the board."""
