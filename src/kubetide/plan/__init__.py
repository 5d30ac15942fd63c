"""Messages between loops: intents with due times, and the capacity that answers them."""
