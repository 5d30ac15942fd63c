"""Errors of an allocation: upstream's messages, and whether they end the search on all nodes."""

from __future__ import annotations


class ClaimError(Exception):
    """A claim, class or slice is invalid: an Error of the plugin, in upstream's words."""


class NodeError(Exception):
    """This node's pools are broken; other nodes may still be allocated from."""
