"""Answers on demand: why a pod waits, why a node stays or goes, what a group can do."""
