"""Start and end of the parts of a tick, for whoever measures time.

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
    "scaleUp:skippedNodeGroupsSimulation",
    "updateClusterState",
]
"""Upstream's names. Source: Cluster Autoscaler, metrics of August 2026."""


class Phases(Protocol):
    """Called when parts of a tick begin and end."""

    def begin(self, part: Part) -> None:
        """Start the part."""

    def end(self, part: Part) -> None:
        """End the part; one that has not begun is ignored."""


class NoPhases:
    """Measures nothing: for replays and explanations."""

    def begin(self, part: Part) -> None:
        """Do nothing."""

    def end(self, part: Part) -> None:
        """Do nothing."""
