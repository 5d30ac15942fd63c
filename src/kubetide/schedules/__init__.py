"""Scheduled scaling: time tables of several kinds, followed by one loop."""
