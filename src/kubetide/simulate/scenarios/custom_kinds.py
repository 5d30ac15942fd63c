"""Custom kinds of a run's cluster: those that its loops read or its manifests contain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubetide.elastic.definitions import definitions as elastic_definitions
from kubetide.loop import LoopSettings, expand_groups
from kubetide.nodes.capacity.definitions import definitions as capacity_definitions
from kubetide.nodes.facts.capacity import kinds_read
from kubetide.nodes.settings import Settings
from kubetide.objects.base import Json
from kubetide.objects.kinds import (
    CAPACITY_KINDS,
    CUSTOM_RESOURCE_DEFINITIONS,
    ELASTIC_WORKLOADS,
    STORED_KINDS,
    TIME_TABLE_KINDS,
    VERTICAL_KINDS,
    Kind,
)
from kubetide.simulate.scenarios.build import Manifests
from kubetide.vertical.definitions import definitions as vpa_definitions

_VERTICAL_LOOPS: Final = frozenset({"recommender", "updater", "admission"})


def definitions_for(loops: Iterable[str], manifests: Manifests, settings: LoopSettings) -> tuple[Json, ...]:
    """Return the definitions of custom kinds that a loop of the run reads, or that the manifests contain."""
    vertical = not _VERTICAL_LOOPS.isdisjoint(expand_groups(loops)) or _holds(manifests, VERTICAL_KINDS)
    capacity = kinds_read(settings.of(Settings)) or _holds(manifests, CAPACITY_KINDS)
    elastic = "elastic" in expand_groups(loops) or _holds(manifests, (ELASTIC_WORKLOADS,))
    return (
        *(vpa_definitions() if vertical or elastic else ()),
        *(capacity_definitions() if capacity else ()),
        *(elastic_definitions() if elastic else ()),
    )


def stored_kinds(loops: Iterable[str], manifests: Manifests) -> tuple[Kind[Any], ...]:
    """Return the kinds that the run's API server stores from the start.

    Time tables are among them where their loop runs or one is among the manifests.
    """
    named = {"schedules", "scaledobjects"}
    tables = not named.isdisjoint(expand_groups(loops)) or _holds(manifests, TIME_TABLE_KINDS)
    return (*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS, *(TIME_TABLE_KINDS if tables else ()))


def _holds(manifests: Manifests, kinds: tuple[Kind[Any], ...]) -> bool:
    return any(kind in kinds for kind, _ in manifests)
