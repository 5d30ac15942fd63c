"""Consolidation: replaces or merges nodes when the saving exceeds the price of the disruption."""
