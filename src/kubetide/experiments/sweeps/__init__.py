"""Many variants of a scenario: a grid of settings and seeds, run on this machine or on Dask, and what came of it."""
