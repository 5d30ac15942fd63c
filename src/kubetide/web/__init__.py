"""The dashboard: a recorded run, one that goes on or an old one, in a browser."""
