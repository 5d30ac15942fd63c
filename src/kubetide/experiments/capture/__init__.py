"""A scenario from the records of a run: what was there, what it was asked for, and what the records do not show."""
