"""Tuning: a search over knobs under constraints, evaluated on runs that the search has not used."""
