"""Expected pods: as many as came within the last half hour, at most or usually. Consolidation leaves capacity for them.

Among the pods that came and went, the stretch of time counts in which their requests rose most; such a rise may come
again. It shows which free capacity pods use now and then, and which nobody uses. How far the requests rise usually says
what is more likely than not to be used. Pods that the same groups take count together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubetide.nodes.consolidation.fills import FloatVector
from kubetide.nodes.consolidation.memory import MOST_GONE, GonePod
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.scheduling import BoolVector, PodClass, Snapshot, classify_unbound
from kubetide.units.time import Duration, Instant, before, format_rfc3339, instant_of, minutes

WINDOW: Duration = minutes(30)
"""How long pods are remembered."""
_STEP: Duration = minutes(1)
"""How far apart the stretches begin that are compared."""
MOST_EXPECTED = 1000
"""Most pods that a search finds places for."""


class Change(NamedTuple):
    """A pod that came (1) or went (-1)."""

    at: Instant
    sign: int
    pod: Pod


def note_gone(state: State, now: Instant) -> None:
    """Note when pods went since the last tick, and forget those that went before the window."""
    memory, oldest = state.memory.consolidation, before(now, WINDOW)
    if memory.gone and memory.gone[0].at <= oldest:
        memory.gone = tuple(one for one in memory.gone if one.at > oldest)
    if memory.gone_since:
        new = (GonePod(pod, now) for pod in memory.gone_since if _counts(pod))
        memory.gone, memory.gone_since = (*memory.gone, *new)[-MOST_GONE:], ()


def changes_by_groups(
    state: State, templates: Mapping[str, Template | None], now: Instant
) -> list[list[Change]]:
    """Return which pods came and went within the window, in order; one list for pods that the same groups take."""
    known: dict[PodClass, Hashable] = {}
    by_groups: dict[Hashable, list[Change]] = {}
    for change in _changes(state, now):
        pod_class = classify_unbound(change.pod)
        if pod_class not in known:
            known[pod_class] = _groups_for(pod_class, templates)
        by_groups.setdefault(known[pod_class], []).append(change)
    return [sorted(changes, key=_order) for changes in by_groups.values()]


def expected(state: State, templates: Mapping[str, Template | None], now: Instant) -> list[Pod]:
    """Return pods like those of the greatest rises.

    Those that come so seldom that keeping a node for them costs more than buying it back are left out (as in ``keeping``).
    """
    found: list[Pod] = []
    for changes in changes_by_groups(state, templates, now):
        number = sum(change.sign > 0 for change in changes)
        # The next of n arrivals comes after an n-th of the window.
        if number * state.settings.buy_back_price >= WINDOW:
            found += greatest_rise(changes)
    return found


def place_expected(
    snapshot: Snapshot, pods: Sequence[Pod], open_rows: BoolVector, prices: FloatVector | None = None
) -> list[str]:
    """Place the pods on the fullest nodes that take them, large pods first; return the nodes.

    Of equally full nodes the first is taken, with ``prices`` of the rows the first of the cheapest. Pods without a place are left out: for them something must be bought, whatever goes.
    """
    found: dict[str, None] = {}
    sized = sorted(pods, key=lambda pod: tuple(sorted(classify_unbound(pod).requests.items())), reverse=True)
    for number, pod in enumerate(sized[:MOST_EXPECTED]):
        pod_class = classify_unbound(pod)
        fits = snapshot.feasible(pod_class) & open_rows
        if not fits.any():
            continue
        left = np.full(len(fits), np.inf)
        for name in pod_class.requests:
            if (column := snapshot.column(name)) is not None:
                allocatable, free = column
                left = np.minimum(left, free / np.maximum(allocatable, 1))
        left = np.where(fits, left, np.inf)
        if prices is not None:
            left = np.where(left == left.min(), prices, np.inf)
        node = snapshot.node_names[int(left.argmin())]
        metadata = replace(pod.metadata, name=f"{pod.metadata.name}-expected-{number}", uid="")
        snapshot.add_pod(replace(pod, metadata=metadata), node, pod_class)
        found[node] = None
    return list(found)


def greatest_rise(changes: Sequence[Change]) -> list[Pod]:
    """Return, per kind, the largest net number of new pods while a resource's requests rose most."""
    return _pods_of(changes, _steepest)


def usual_rise(changes: Sequence[Change], now: Instant, horizon: Duration) -> list[Pod]:
    """Return, per kind, the largest net number of new pods in a usual rise of a resource's requests.

    Stretches of ``horizon`` begin each minute of the window. In at least half of them the requests rise so far above
    what they were at the begin. So what is kept for these pods is more likely than not to be used within ``horizon``.
    """
    horizon = min(horizon, WINDOW)
    times = [change.at for change in changes]
    stretches = [
        (bisect_left(times, begin), bisect_left(times, begin + horizon))
        for begin in range(before(now, WINDOW), before(now, horizon) + 1, _STEP)
    ]

    def usual(amounts: Sequence[int]) -> tuple[int, int]:
        rises = []
        for begin, end in stretches:
            sums = list(accumulate(amounts[begin:end]))
            most = max(sums, default=0)
            rises.append((most, begin, begin + sums.index(most) + 1) if most > 0 else (0, begin, begin))
        _, begin, end = sorted(rises)[len(rises) // 2]
        return begin, end

    return _pods_of(changes, usual)


def _pods_of(changes: Sequence[Change], stretch: Callable[[Sequence[int]], tuple[int, int]]) -> list[Pod]:
    """Return, per kind, the largest net number of new pods in the stretches that are taken for each resource."""
    requests = [classify_unbound(change.pod).requests for change in changes]
    most: dict[Hashable, int] = {}
    pods: dict[Hashable, Pod] = {}
    for resource in sorted({name for one in requests for name in one}):
        amounts = [change.sign * one.get(resource, 0) for change, one in zip(changes, requests, strict=True)]
        begin, end = stretch(amounts)
        counts: dict[Hashable, int] = {}
        for change in changes[begin:end]:
            kind = _kind(change.pod)
            counts[kind] = counts.get(kind, 0) + change.sign
            pods.setdefault(kind, change.pod)
        for kind, count in counts.items():
            most[kind] = max(most.get(kind, 0), count)
    return [pods[kind] for kind, count in most.items() for _ in range(count)]


def _steepest(amounts: Sequence[int]) -> tuple[int, int]:
    """Return where the run of changes begins and ends whose sum is greatest; nothing where nothing rises."""
    best = begin = end = total = start = 0
    for number, amount in enumerate(amounts):
        if total <= 0:
            total, start = 0, number
        total += amount
        if total > best:
            best, begin, end = total, start, number + 1
    return begin, end


def _changes(state: State, now: Instant) -> Iterator[Change]:
    oldest = format_rfc3339(before(now, WINDOW))
    gone = state.memory.consolidation.gone
    for pod in (*(one.pod for one in gone), *state.pods.values()):
        text = pod.metadata.creation_timestamp
        # Text of one form and one zone is in the order of time.
        if text is None or text <= oldest or not pod.spec.node_name or not _counts(pod):
            continue
        if (created := instant_of(text)) is not None:
            yield Change(created, 1, pod)
    for one in gone:
        yield Change(one.at, -1, one.pod)


def _order(change: Change) -> tuple[Instant, int, str, str]:
    return change.at, change.sign, change.pod.metadata.namespace, change.pod.metadata.name


def _counts(pod: Pod) -> bool:
    return not is_daemon_set_pod(pod) and not is_mirror_pod(pod)


def _kind(pod: Pod) -> Hashable:
    found = classify_unbound(pod)
    return tuple(found.requests.items()), found.node_key or found.key


def _groups_for(pod_class: PodClass, templates: Mapping[str, Template | None]) -> Hashable:
    return tuple(
        group
        for group, one in templates.items()
        if one is not None and one.fresh.fits(pod_class, one.node.metadata.name)
    )
