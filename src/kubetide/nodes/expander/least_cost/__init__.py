"""``--expander=least-cost``: the cheapest new nodes for all waiting pods, over all groups at once."""
