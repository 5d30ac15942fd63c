"""Which custom kinds the cluster of a run knows: those that its loops read or its manifests hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubetide.loop import spelled_out
from kubetide.objects.kinds import (
    CAPACITY_KINDS,
    CUSTOM_RESOURCE_DEFINITIONS,
    STORED_KINDS,
    TIME_TABLE_KINDS,
    VERTICAL_KINDS,
    Kind,
)
from kubetide.simulate.build import Manifests

_VERTICAL_LOOPS: Final = frozenset({"recommender", "updater", "admission"})


def needs_vpa_definitions(loops: Iterable[str], manifests: Manifests) -> bool:
    """Return whether a loop of the run reads VPA objects, or one is among the manifests."""
    return not _VERTICAL_LOOPS.isdisjoint(spelled_out(loops)) or _holds(manifests, VERTICAL_KINDS)


def needs_capacity_definitions(reads: bool, manifests: Manifests) -> bool:  # of two equal reasons
    """Return whether the run's flags have requests for capacity read, or one is among the manifests."""
    return reads or _holds(manifests, CAPACITY_KINDS)


def stored_kinds(loops: Iterable[str], manifests: Manifests) -> tuple[Kind[Any], ...]:
    """Return the kinds that the run's API server stores from the start.

    Time tables are among them where their loop runs or one is among the manifests.
    """
    tables = "schedules" in spelled_out(loops) or _holds(manifests, TIME_TABLE_KINDS)
    return (*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS, *(TIME_TABLE_KINDS if tables else ()))


def _holds(manifests: Manifests, kinds: tuple[Kind[Any], ...]) -> bool:
    return any(kind in kinds for kind, _ in manifests)
