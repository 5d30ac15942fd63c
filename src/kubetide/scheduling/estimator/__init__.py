"""How many new nodes of a template a set of pods needs."""
