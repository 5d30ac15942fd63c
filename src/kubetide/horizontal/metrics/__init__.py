"""Metric sources: one file a source type, and the registry."""
