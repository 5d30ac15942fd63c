"""The dashboard: a recorded run, running or finished, in a browser."""
