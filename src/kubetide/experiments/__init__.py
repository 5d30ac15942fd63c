"""Tried before production: a scenario with changes beside the scenario as it is, and policies under test."""
