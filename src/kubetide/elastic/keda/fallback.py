"""The field ``fallback`` of a ScaledObject: failures in a row, and the values that stand for metrics without one.

Source: KEDA 2.21, pkg/fallback: a metric that failed more often than ``failureThreshold`` has the value at which its
HPA comes to so many replicas, and counts as work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kubetide.elastic.keda.triggers import Trigger

BEHAVIORS: Final = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower")
_LIMIT: Final = 1 << 31
_COUNTS: Final = ("failureThreshold", "replicas")

Failures = tuple[tuple[str, int], ...]
"""How often in a row each metric had no value."""


class Fallback(msgspec.Struct, frozen=True):
    """What an HPA goes by while servers fail.

    Attributes:
        threshold: So many failures in a row are borne.
        replicas, behavior: What the HPA then comes to: so many, or the present ones, or the larger or smaller of both.
    """

    threshold: int
    replicas: int
    behavior: str = BEHAVIORS[0]

    @property
    def text(self) -> str:
        """What it comes to, in a few words."""
        return f"{self.replicas} replicas" + ("" if self.behavior == BEHAVIORS[0] else f", {self.behavior}")

    def replicas_at(self, current: int) -> int:
        """Return the replicas that the HPA comes to at a current size."""
        if self.behavior == "currentReplicas":
            return current
        if self.behavior == "currentReplicasIfHigher":
            return max(current, self.replicas)
        if self.behavior == "currentReplicasIfLower":
            return min(current, self.replicas)
        return self.replicas

    def covers(self, failures: Failures) -> frozenset[str]:
        """Return the metrics that failed too often."""
        return frozenset(name for name, count in failures if count > self.threshold)


def read_fallback(said: Mapping[str, Any] | None) -> Fallback | None:
    """Return the parsed field; None without one, or for one that is refused."""
    if not said or any(_refusals(said)):
        return None
    return Fallback(said["failureThreshold"], said["replicas"], said.get("behavior") or BEHAVIORS[0])


def fallback_refusals(said: Mapping[str, Any] | None, triggers: tuple[Trigger, ...]) -> Iterator[str]:
    """Yield why the field, or a trigger beside it, cannot be followed."""
    if not said:
        return
    yield from _refusals(said)
    if not triggers:
        yield "fallback: needs a trigger that is neither cpu nor memory"
    for one in triggers:
        if one.address and not one.average:
            yield f"triggers[{one.place}].metricType: Value has no fallback; write AverageValue, or leave fallback out"


def _refusals(said: Mapping[str, Any]) -> Iterator[str]:
    for name in _COUNTS:
        value = said.get(name)
        if type(value) is not int or not 0 <= value < _LIMIT:
            yield f"fallback.{name}: {value!r} is no whole number from 0 on"
    behavior = said.get("behavior") or BEHAVIORS[0]
    if behavior not in BEHAVIORS:
        yield f"fallback.behavior: {behavior!r} is none of {', '.join(BEHAVIORS)}"


def read_failures(health: Mapping[str, Any] | None) -> Failures:
    """Return the failures that a status tells, so that a restart forgets none."""
    found = []
    for name, one in sorted((health or {}).items()):
        count = one.get("numberOfFailures") if isinstance(one, dict) else None
        if type(count) is int and 0 <= count < _LIMIT:
            found.append((name, count))
    return tuple(found)
