"""Nodes, pods, volumes and devices as the node loop sees them: the fields that it reads."""
