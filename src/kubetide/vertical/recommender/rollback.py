"""Rolling a change of requests back when containers are worse off with it.

An option beyond upstream (``rollback_window``). What the pods of a VPA asked for before it changed them is remembered
for the window. Within it the old amount becomes a floor of the recommendation for as long again

- of memory, when a container that asks for less than that is killed for its memory;
- of CPU, when containers that ask for less reach their CPU limit in a share of samples that is greater by a tenth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kubetide.units.time import Instant, after, between
from kubetide.vertical.recommender.floors import Floor, Place
from kubetide.vertical.recommender.views import Oom, Samples

if TYPE_CHECKING:
    from kubetide.vertical.recommender.state import State

_AT_LIMIT = 0.95
"""Share of the CPU limit from which a sample counts as throttled; the metrics API tells no throttling."""
_RISE = 0.1
_FEWEST = 10
"""Samples after a change before throttling counts."""


class Past(msgspec.Struct):
    """What the containers of a place asked for before they asked for less.

    Attributes:
        amount: The greatest request, in millicores or bytes.
        seen: When a pod last had it.
        before, after: Samples with at least that request, and with less.
        throttled_before, throttled_after: Those of them at the CPU limit.
    """

    amount: int
    seen: Instant
    before: int = 0
    after: int = 0
    throttled_before: int = 0
    throttled_after: int = 0


def note_requests(state: State) -> None:
    """Take over what running pods ask for now."""
    now, window = state.at, state.settings.rollback_window
    current: dict[Place, int] = {}
    for (namespace, _), pod in state.pods.items():
        if pod.phase == "Running" and pod.resources:
            for vpa in state.groups[namespace, pod.labels].vpas:
                for container, one in pod.resources.items():
                    for resource, amount in (("cpu", one.cpu), ("memory", one.memory)):
                        place = (*vpa, container, resource)
                        current[place] = max(current.get(place, 0), amount)
    for place, amount in current.items():
        past = state.pasts.get(place)
        if past is None or amount > past.amount or between(past.seen, now) > window:
            state.pasts[place] = Past(amount, now)
        elif amount == past.amount:
            past.seen = now
    for place in [place for place in state.pasts if place[:2] not in state.vpas]:
        del state.pasts[place]


def note_throttling(state: State, samples: Samples) -> None:
    """Count samples at the CPU limit; roll back where they have become more with a lower request."""
    touched: dict[Place, Past] = {}
    bounds, cpu = samples.first.tolist(), samples.cpu.tolist()
    for number, key in enumerate(zip(samples.namespaces, samples.names, strict=True)):
        pod = state.pods.get(key)
        if pod is None or not pod.resources:
            continue
        for place in range(bounds[number], bounds[number + 1]):
            container = samples.containers[place]
            one = pod.resources.get(container)
            if one is None or not one.cpu_limit:
                continue
            throttled = cpu[place] >= _AT_LIMIT * one.cpu_limit
            for vpa in state.groups[key[0], pod.labels].vpas:
                past = state.pasts.get((*vpa, container, "cpu"))
                if past is None:
                    continue
                touched[(*vpa, container, "cpu")] = past
                if one.cpu < past.amount:
                    past.after += 1
                    past.throttled_after += throttled
                else:
                    past.before += 1
                    past.throttled_before += throttled
    for where, past in touched.items():
        if past.after >= _FEWEST and _share(past.throttled_after, past.after) > _RISE + _share(
            past.throttled_before, past.before
        ):
            _roll_back(state, where, past)
            past.after = past.throttled_after = 0


def note_kill(state: State, oom: Oom) -> None:
    """Roll back where a container was killed that asks for less memory than before."""
    pod = state.pods.get((oom.namespace, oom.pod))
    for vpa in () if pod is None else state.groups[oom.namespace, pod.labels].vpas:
        place = (*vpa, oom.container, "memory")
        past = state.pasts.get(place)
        if past is not None and oom.memory < past.amount:
            _roll_back(state, place, past)


def _roll_back(state: State, place: Place, past: Past) -> None:
    now, window = state.at, state.settings.rollback_window
    if between(past.seen, now) <= window:
        state.floors.put(place, Floor(past.amount, now, after(now, window), "RolledBack"))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
