"""Nodes as rows of columns, and how many pods of which kind are on each node and in each domain."""
