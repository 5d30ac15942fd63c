"""Answers from the records of a run: reasons, coming events, the status page, replay."""
