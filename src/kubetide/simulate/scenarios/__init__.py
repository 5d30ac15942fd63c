"""Scenarios: parsing and checking, and the parts of the world that they describe."""
