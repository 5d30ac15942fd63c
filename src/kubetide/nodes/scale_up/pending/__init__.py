"""Pending pods, and those that fit on existing nodes."""
