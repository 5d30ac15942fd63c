"""Trials before production: a scenario with changes compared with the unchanged one, and policy tests."""
