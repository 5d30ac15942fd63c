"""Which settings to change: a search over knobs under constraints, judged on runs that the search has not seen."""
