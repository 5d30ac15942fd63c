"""Roll-back of changed requests if containers got worse with them.

An option beyond upstream (``rollback_window``). What the pods of a VPA asked for before it changed them is remembered
for the window. Within it the old amount becomes a floor of the recommendation for as long again

- of memory, when a container that asks for less than that is killed for its memory;
- of CPU, when containers that ask for less reach their CPU limit in a share of samples that is greater by a tenth.
"""

from __future__ import annotations

import msgspec

from kubetide.units.time import Duration, Instant, after, between
from kubetide.vertical.recommender.facts.members import Members
from kubetide.vertical.recommender.facts.views import Oom, Samples
from kubetide.vertical.recommender.targets.floors import Floor, Floors, Place

_AT_LIMIT = 0.95
"""Share of the CPU limit from which a sample counts as throttled; the metrics API does not show throttling."""
_RISE = 0.1
_FEWEST = 10
"""Samples after a change before throttling counts."""


class Past(msgspec.Struct):
    """Earlier, higher requests of containers.

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

    def count(self, request: int, *, throttled: bool) -> None:
        """Count a sample of a container with this request."""
        if request < self.amount:
            self.after += 1
            self.throttled_after += throttled
        else:
            self.before += 1
            self.throttled_before += throttled

    def is_worse(self) -> bool:
        """Return whether a larger share of enough samples reaches the CPU limit than before."""
        before = _share(self.throttled_before, self.before)
        return self.after >= _FEWEST and _share(self.throttled_after, self.after) > _RISE + before


class Watch(msgspec.Struct, frozen=True):
    """Notes of one pass about requests and the course of containers.

    Attributes:
        members: Pods and the VPAs that select them.
        pasts: Requests of before; changed in place.
        floors: Where a roll-back is put.
        now: When the pass began.
        window: How long a request of before is remembered.
    """

    members: Members
    pasts: dict[Place, Past]
    floors: Floors
    now: Instant
    window: Duration

    def note_requests(self) -> None:
        """Note the present requests of running pods."""
        current: dict[Place, int] = {}
        for (namespace, _), pod in self.members.pods.items():
            if pod.phase == "Running" and pod.resources:
                for vpa in self.members.vpas_of(namespace, pod):
                    for container, one in pod.resources.items():
                        for resource, amount in (("cpu", one.cpu), ("memory", one.memory)):
                            place = (*vpa, container, resource)
                            current[place] = max(current.get(place, 0), amount)
        for place, amount in current.items():
            past = self.pasts.get(place)
            if past is None or amount > past.amount or between(past.seen, self.now) > self.window:
                self.pasts[place] = Past(amount, self.now)
            elif amount == past.amount:
                past.seen = self.now
        for place in [place for place in self.pasts if place[:2] not in self.members.vpas]:
            del self.pasts[place]

    def note_throttling(self, samples: Samples) -> None:
        """Count samples at the CPU limit; roll back if their share grew with a lower request."""
        touched: dict[Place, Past] = {}
        bounds, cpu = samples.first.tolist(), samples.cpu.tolist()
        for number, key in enumerate(zip(samples.namespaces, samples.names, strict=True)):
            pod = self.members.pods.get(key)
            if pod is None or not pod.resources:
                continue
            for at in range(bounds[number], bounds[number + 1]):
                container = samples.containers[at]
                one = pod.resources.get(container)
                if one is None or not one.cpu_limit:
                    continue
                throttled = cpu[at] >= _AT_LIMIT * one.cpu_limit
                for vpa in self.members.vpas_of(key[0], pod):
                    place = (*vpa, container, "cpu")
                    past = self.pasts.get(place)
                    if past is None:
                        continue
                    touched[place] = past
                    past.count(one.cpu, throttled=throttled)
        for place, past in touched.items():
            if past.is_worse():
                self._roll_back(place, past)
                past.after = past.throttled_after = 0

    def note_kill(self, oom: Oom) -> None:
        """Roll back if a killed container requests less memory than before."""
        pod = self.members.pods.get((oom.namespace, oom.pod))
        for vpa in () if pod is None else self.members.vpas_of(oom.namespace, pod):
            place = (*vpa, oom.container, "memory")
            past = self.pasts.get(place)
            if past is not None and oom.memory < past.amount:
                self._roll_back(place, past)

    def _roll_back(self, place: Place, past: Past) -> None:
        if between(past.seen, self.now) <= self.window:
            until = after(self.now, self.window)
            self.floors.put(place, Floor(past.amount, self.now, until, "RolledBack"))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
