"""Nodes: the node loop (Cluster Autoscaler). ``decide.py`` is the table of contents of its algorithm."""
