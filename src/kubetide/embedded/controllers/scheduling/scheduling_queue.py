"""The scheduler's queue: who is tried next, and when a pod that did not fit is tried again.

Pure: times are arguments. Source: kube-scheduler 1.36 scheduling queue (active, backoff and unschedulable pods; back-off
1 s doubled to 10 s, in whole seconds; left-overs tried again after 5 minutes). A pod that backs off is tried at once
when no other is active (KEP-5142, on by default since 1.33), unless it failed by an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from kubetide.embedded.controllers.scheduling.asking_classes import AskingClasses
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod, priority_of
from kubetide.scheduling import PodClass
from kubetide.units.time import Instant, after, minutes, seconds

_FIRST_BACKOFF = seconds(1)
_LONGEST_BACKOFF = seconds(10)
_LEFT_OVER = minutes(5)
_WINDOW = seconds(1)
"""Back-offs end at whole seconds; those that end in the same one are ordered as active pods are."""


@dataclass(slots=True, eq=False)
class Waiting:
    """One pod that waits for a node.

    Attributes:
        since: When it came, or was tried last.
        arrival: Its number among all that came.
        refusals: How often it fitted nowhere.
        errors: How often its binding failed since.
    """

    key: Key
    uid: str
    priority: int
    since: Instant
    arrival: int
    pod_class: PodClass
    refusals: int = 0
    errors: int = 0
    where: Literal["active", "backoff", "error backoff", "unschedulable", "out"] = "out"

    def rank(self) -> tuple[int, Instant, int]:
        """Return what active pods are ordered by."""
        return -self.priority, self.since, self.arrival

    def back_off_until(self) -> Instant:
        """Return the whole second in which its back-off ends; long ago for one that was never tried."""
        count = self.errors or self.refusals
        if not count:
            return Instant(0)
        pause = min(_FIRST_BACKOFF << min(count - 1, 10), _LONGEST_BACKOFF)
        return _window(Instant(self.since + pause))


def _window(time: Instant) -> Instant:
    return Instant(time - time % _WINDOW)


class SchedulingQueue:
    """Pods that wait, by priority and then arrival.

    Attributes:
        asking: Of ``unschedulable_classes`` those that another pod's coming may help.
    """

    def __init__(self) -> None:
        self.asking = AskingClasses()
        self._arrivals = 0
        self._waiting: dict[Key, Waiting] = {}
        # Heaps are cleaned on reading: an entry counts only while it stands where the heap says.
        self._active: list[tuple[tuple[int, Instant, int], Waiting]] = []
        self._backoff: list[tuple[Instant, tuple[int, Instant, int], Waiting]] = []
        self._errors: list[tuple[Instant, int, Waiting]] = []
        self._unschedulable: dict[PodClass, dict[Key, Waiting]] = {}
        self._by_failure: dict[Key, Waiting] = {}
        """Unschedulable pods, the longest-waiting first."""

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def get(self, key: Key) -> Waiting | None:
        """Return the entry of a pod that waits, or None."""
        return self._waiting.get(key)

    def add(self, key: Key, pod: Pod, pod_class: PodClass, now: Instant) -> None:
        """Take in a pod, to be tried at once."""
        self.remove(key)
        self._arrivals += 1
        entry = Waiting(key, pod.metadata.uid, priority_of(pod), now, self._arrivals, pod_class)
        self._waiting[key] = entry
        self._activate(entry)

    def remove(self, key: Key) -> None:
        """Forget a pod that is bound or gone."""
        entry = self._waiting.pop(key, None)
        if entry is not None:
            self._leave(entry)

    def pop(self, now: Instant) -> Waiting | None:
        """Return the next pod to be tried, or None when none is due; it stays known until removed or failed."""
        self._wake_due(now)
        while self._active:
            entry = heappop(self._active)[1]
            if entry.where == "active":
                entry.where = "out"
                return entry
        while self._backoff:
            entry = heappop(self._backoff)[2]
            if entry.where == "backoff":
                entry.where = "out"
                return entry
        return None

    def failed(self, entry: Waiting, now: Instant, *, gated: bool = False) -> None:
        """Put back a pod that fits nowhere, or that was not tried as it is gated: it waits for an event that may help."""
        if self._waiting.get(entry.key) is not entry:
            return
        if not gated:
            entry.refusals += 1
            entry.errors = 0
        entry.since = now
        entry.where = "unschedulable"
        of_class = self._unschedulable.get(entry.pod_class)
        if of_class is None:
            of_class = self._unschedulable[entry.pod_class] = {}
            self.asking.add(entry.pod_class)
        of_class[entry.key] = entry
        self._by_failure[entry.key] = entry

    def retry(self, entry: Waiting, now: Instant) -> None:
        """Put back a pod whose binding failed: it is tried again after its back-off."""
        if self._waiting.get(entry.key) is not entry:
            return
        self._leave(entry)
        entry.errors += 1
        entry.since = now
        entry.where = "error backoff"
        # Pods are taken up at each whole second, those whose back-off ends in it at the next one.
        heappush(self._errors, (Instant(entry.back_off_until() + _WINDOW), entry.arrival, entry))

    def unschedulable_classes(self) -> list[PodClass]:
        """Return the classes of the pods that wait for an event."""
        return list(self._unschedulable)

    def wake(self, pod_class: PodClass, now: Instant) -> None:
        """Try the class again after an event that may help, pods that back off after all others."""
        for entry in list(self._unschedulable.get(pod_class, {}).values()):
            self._leave(entry)
            until = entry.back_off_until()
            if until < _window(now):
                self._activate(entry)
            else:
                entry.where = "backoff"
                heappush(self._backoff, (until, entry.rank(), entry))

    def next_due(self) -> Instant | None:
        """Return when ``pop`` may give a pod without any event; None for never."""
        while self._errors and self._errors[0][2].where != "error backoff":
            heappop(self._errors)
        dues = [self._errors[0][0]] if self._errors else []
        first = next(iter(self._by_failure.values()), None)
        if first is not None:
            dues.append(after(first.since, _LEFT_OVER))
        return min(dues, default=None)

    def _wake_due(self, now: Instant) -> None:
        while self._backoff and self._backoff[0][0] < _window(now):
            entry = heappop(self._backoff)[2]
            if entry.where == "backoff":
                self._activate(entry)
        while self._errors and self._errors[0][0] <= now:
            entry = heappop(self._errors)[2]
            if entry.where == "error backoff":
                self._activate(entry)
        while self._by_failure:
            entry = next(iter(self._by_failure.values()))
            if after(entry.since, _LEFT_OVER) > now:
                return
            self._leave(entry)
            self._activate(entry)

    def _activate(self, entry: Waiting) -> None:
        entry.where = "active"
        heappush(self._active, (entry.rank(), entry))

    def _leave(self, entry: Waiting) -> None:
        if entry.where == "unschedulable":
            of_class = self._unschedulable[entry.pod_class]
            del of_class[entry.key]
            if not of_class:
                del self._unschedulable[entry.pod_class]
                self.asking.remove(entry.pod_class)
            del self._by_failure[entry.key]
        entry.where = "out"
