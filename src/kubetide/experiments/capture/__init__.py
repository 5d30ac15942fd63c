"""Builds a scenario from the records of a run: objects, load, and notes about what the records do not show."""
