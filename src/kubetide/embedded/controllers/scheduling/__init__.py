"""The embedded scheduler: its queue, its caches, the choice of a node, and what it binds."""
