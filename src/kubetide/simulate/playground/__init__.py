"""What a person changes while an embedded cluster runs: its load, and what goes wrong in it."""
