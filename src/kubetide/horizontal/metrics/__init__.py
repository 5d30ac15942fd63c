"""Metric source types: one file each, and the registry."""
