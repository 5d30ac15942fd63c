"""Groups that are alike, and new nodes shared out among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.nodes.reference.places import Place
from tests.nodes.reference.snapshot import requests
from tests.nodes.reference.world import Group

from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.units.quantity import milli

IGNORED_LABELS = (
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
)
ALWAYS_REQUESTED = ("cpu", "memory", "pods", "ephemeral-storage")


@dataclass(frozen=True)
class Ratios:
    """By how much of the larger the memory, what is allocatable and what is free may differ."""

    memory: float = 0.015
    allocatable: float = 0.05
    free: float = 0.05


def are_similar(one: Place, other: Place, ignored: Sequence[str] = (), ratios: Ratios | None = None) -> bool:
    """Return whether two templates are the same kind of machine with the same labels but for name and place.

    `ignored` are further labels that do not count.
    """
    ratios = ratios or Ratios()
    mine, theirs = _thousandths(one, "capacity"), _thousandths(other, "capacity")
    if mine.keys() != theirs.keys():
        return False
    for name, value in mine.items():
        if name == "memory" and not _close(value, theirs[name], ratios.memory):
            return False
        if name != "memory" and value != theirs[name]:
            return False
    given = _thousandths(one, "allocatable"), _thousandths(other, "allocatable")
    if not _all_close(*given, ratios.allocatable) or not _all_close(_free(one), _free(other), ratios.free):
        return False
    return _labels(one, ignored) == _labels(other, ignored)


def _thousandths(place: Place, field: str) -> dict[str, int]:
    return {name: milli(value) for name, value in (place.node["status"].get(field) or {}).items()}


def _free(place: Place) -> dict[str, int]:
    """Allocatable less what pods request, for the usual resources and those that a pod names."""
    has = _thousandths(place, "allocatable")
    taken = dict.fromkeys(ALWAYS_REQUESTED, 0)
    for pod in place.pods:
        for name, value in requests(pod).items():
            taken[name] = taken.get(name, 0) + (value if name == "cpu" else value * 1000)
    return {name: has.get(name, 0) - value for name, value in taken.items()}


def _all_close(mine: dict[str, int], theirs: dict[str, int], ratio: float) -> bool:
    return mine.keys() == theirs.keys() and all(_close(mine[name], theirs[name], ratio) for name in mine)


def _close(one: int, other: int, ratio: float) -> bool:
    larger, smaller = float(max(one, other)), float(min(one, other))
    return larger - smaller <= larger * ratio


def _labels(place: Place, ignored: Sequence[str]) -> dict[str, str]:
    given = place.node["metadata"].get("labels") or {}
    return {name: value for name, value in given.items() if name not in (*IGNORED_LABELS, *ignored)}


@dataclass
class Resize:
    """A group that is to grow."""

    group: str
    current: int
    new: int
    max: int

    @property
    def delta(self) -> int:
        return self.new - self.current


def balanced(groups: list[Group], count: int) -> list[Resize]:
    """Share new nodes out one at a time, always to a smallest group that is not full; groups that get none are left out.

    What exceeds the maximum of all is dropped. The order of the result is upstream's: by size before, and a group that
    fills up changes places with the first that is not full.
    """
    plan = [Resize(one.id, one.target, one.target, one.max) for one in groups if one.target != one.max]
    count = min(count, sum(max(0, one.max - one.current) for one in plan))
    plan = [plan[at] for at in descending_order([-one.current for one in plan])]
    first = at = 0
    while count > 0:
        before, after = plan[at], at + 1
        if before.new < before.max:
            before.new += 1
            count -= 1
        else:
            plan[first], plan[at] = plan[at], plan[first]
            first += 1
        # Upstream looks at what stands at this index now, after the exchange.
        step = after < len(plan) and plan[at].new > plan[after].new
        at = after if step else first
    return [one for one in plan if one.delta != 0]
