"""Where the parts of a tick begin and end, for who takes the time.

The parts say so themselves; they read no clock, and nothing is decided by how long one took.
"""

from __future__ import annotations

from typing import Literal, Protocol

Part = Literal[
    "cloudProviderRefresh",
    "filterOutSchedulable",
    "findUnneeded",
    "loopWait",
    "scaleDown",
    "scaleUp",
    "scaleUp:buildPodEquivalenceGroups",
    "scaleUp:estimate",
    "updateClusterState",
]
"""Upstream's names. Source: Cluster Autoscaler, metrics of July 2026."""


class Phases(Protocol):
    """Called as the parts of a tick begin and end."""

    def begin(self, part: Part) -> None:
        """Note that the part begins."""

    def end(self, part: Part) -> None:
        """Note that the part is over; one that has not begun is ignored."""


class NoPhases:
    """Takes no time: for replays and explanations."""

    def begin(self, part: Part) -> None:
        """Keep nothing."""

    def end(self, part: Part) -> None:
        """Keep nothing."""
