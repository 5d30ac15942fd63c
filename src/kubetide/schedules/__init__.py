"""Pods by the clock: time tables of several kinds, followed by one loop."""
