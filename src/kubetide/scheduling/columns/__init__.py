"""Nodes as rows of columns, and counts of pods per node and topology domain."""
