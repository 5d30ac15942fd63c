"""Scalings by others, as the memory of a loop that only advises: its rate limits count them.

A loop that acts remembers its own changes. One that advises makes none: it follows those of whoever acts, from the
events of the HPAs at the start ("New size: 8; ..."), and from the scales afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from kubetide.horizontal.decision import LateScale
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.memory import Change, MemoryEntry, ScaleEvents, remember_change
from kubetide.horizontal.state import State
from kubetide.objects.cluster import Event
from kubetide.objects.kinds import EVENTS, HPAS
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339

# Source: horizontal controller v1.36, the message of SuccessfulRescale; client-go v1.36 combines many different ones.
_SIZE = re.compile(r"(?:\(combined from similar events\): )?New size: (\d+);")
_ASKED = f"involvedObject.kind={HPAS.kind},reason=SuccessfulRescale"


class PastChanges:
    """Follows scalings by others."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._read = False

    async def memory(
        self, state: State, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView]
    ) -> tuple[MemoryEntry, ...]:
        """Return the changed memory of HPAs with behavior; without permission to read events, without the past."""
        first, self._read = not self._read, True
        changed = await self._recorded() if first else {}
        found: dict[Key, ScaleEvents] = {}
        for key, changes in changed.items():
            _remember(found, key, specs.get(key), changes, ScaleEvents())
        now = self._clock.now()
        for key, scale in scales.items():
            before = state.scales.get(key)
            if before is None or before.error or scale.error or before.spec_replicas == scale.spec_replicas:
                continue
            known = state.events.get(key, ScaleEvents())
            _remember(found, key, specs.get(key), [(now, scale.spec_replicas - before.spec_replicas)], known)
        return tuple(MemoryEntry(*key, events=events) for key, events in sorted(found.items()))

    async def _recorded(self) -> dict[Key, list[tuple[Instant, int]]]:
        try:
            events = (await self._cluster.list(EVENTS, fields=_ASKED)).items
        except ApiError:
            return {}
        sizes: dict[Key, list[tuple[Instant, int]]] = {}
        for event in events:
            size = _SIZE.match(event.message)
            at = _time_of(event)
            if size is not None and at is not None:
                about = event.involved_object
                sizes.setdefault((about.namespace, about.name), []).append((at, int(size[1])))
        return {key: list(_changes(sorted(changed))) for key, changed in sizes.items()}


def memory_after(state: State, late: Iterable[LateScale]) -> tuple[MemoryEntry, ...]:
    """Return the memory of HPAs with behavior after writes whose outcome has come late."""
    found: dict[Key, ScaleEvents] = {}
    for one in late:
        key = one.namespace, one.name
        if not one.error:
            known = state.events.get(key, ScaleEvents())
            _remember(found, key, state.specs.get(key), [(one.at, one.desired - one.current)], known)
    return tuple(MemoryEntry(*key, events=events) for key, events in sorted(found.items()))


def _changes(sizes: list[tuple[Instant, int]]) -> Iterable[tuple[Instant, int]]:
    """Yield each change and when it was; it is not known what the first was a change from."""
    for (_, before), (at, size) in pairwise(sizes):
        yield at, size - before


def _remember(
    found: dict[Key, ScaleEvents],
    key: Key,
    spec: Autoscaler | None,
    changes: Iterable[tuple[Instant, int]],
    known: ScaleEvents,
) -> None:
    """Add changes; only HPAs with behavior have use for them."""
    if spec is None or spec.up is None or spec.down is None:
        return
    events = found.setdefault(key, known.copy())
    for at, change in changes:
        remember_change(events, Change(at, change), spec.up.longest_period, spec.down.longest_period)


def _time_of(event: Event) -> Instant | None:
    try:
        return parse_rfc3339(event.last_timestamp or event.first_timestamp or "")
    except TimeFormatError:
        return None
