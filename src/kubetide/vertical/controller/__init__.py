"""API requests that the controllers of the VPA programs share."""
