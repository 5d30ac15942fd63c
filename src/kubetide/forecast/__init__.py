"""Forecasts: past load in, the least load to come out. Pure, in columns."""
