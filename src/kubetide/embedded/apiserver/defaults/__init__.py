"""What the API server fills in."""
