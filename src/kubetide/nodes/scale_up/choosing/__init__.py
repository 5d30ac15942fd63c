"""The options of each group for the pods, and the choice among them."""
