"""How the cases of the suite of time tables are played, by upstream."""
