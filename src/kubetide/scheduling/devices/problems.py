"""What stops an allocation: upstream's messages, and which of them end the search on all nodes."""

from __future__ import annotations


class ClaimError(Exception):
    """Something is wrong with a claim, a class or a slice: an Error of the plugin, in upstream's words."""


class NodeError(Exception):
    """Nothing can be given on this node because its pools are broken; other nodes may do."""
