"""Upstream's protocol for an expander in a process of its own: asked by ours, and served to upstream's."""
