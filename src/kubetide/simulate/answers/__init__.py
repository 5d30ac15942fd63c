"""Answers from the records of a run: why, what is to come, the page of its state, replay."""
