"""What the loops say to each other: intents with due times, and the capacity that answers them."""
