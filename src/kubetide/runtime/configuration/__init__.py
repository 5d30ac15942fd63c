"""The configuration of a process from files, variables and flags."""
