"""Time: the clock of the program, virtual time, and a live run's pace."""
