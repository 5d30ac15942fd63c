"""Time: the clock that everything asks, virtual time, and a live run's pace."""
