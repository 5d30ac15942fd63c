"""What the controllers of the VPA programs ask the API server alike."""
