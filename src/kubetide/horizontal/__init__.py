"""Pods out: the horizontal loop (HPA). ``decide.py`` is the table of contents of its algorithm."""
