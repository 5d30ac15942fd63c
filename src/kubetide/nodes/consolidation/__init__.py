"""Consolidation: nodes that are replaced by cheaper ones, or merged, when the saving exceeds a priced disruption."""
