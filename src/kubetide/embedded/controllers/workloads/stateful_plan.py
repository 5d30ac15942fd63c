"""What a StatefulSet's pods need next, and what its status says: pure.

Pods have names that count up, ``web-0``, ``web-1``. Under the policy OrderedReady one step is taken
at a time, and the next one waits until every pod before it is available; under Parallel pods are
made and removed all at once. Updates go from the highest ordinal down to the partition.

Source: kube-controller-manager v1.36, stateful_set_control.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kubetide.embedded.controllers.workloads.owned_pods import available_at, is_ready
from kubetide.embedded.controllers.workloads.templates import scaled_value
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.statefulset import StatefulSet, StatefulSetStatus
from kubetide.units.time import Instant, seconds

REVISION_LABEL = "controller-revision-hash"
_NAME = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL)


class Create(NamedTuple):
    """A pod to be made from the template of a revision."""

    ordinal: int
    revision: str


class Delete(NamedTuple):
    """A pod to be deleted; ``ended`` when it has finished by itself."""

    pod: Pod
    ended: bool = False


Step = Create | Delete


class Revisions(msgspec.Struct, frozen=True):
    """The names of the revision that the set is coming from and of the one it is going to."""

    current: str
    update: str


def ordinal_of(name: str, set_name: str) -> int | None:
    """Return the number in a pod's name, None when it is not a name that the set gives."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] != set_name or str(int(match[2])) != match[2]:
        return None
    return int(match[2])


def first_ordinal(stateful_set: StatefulSet) -> int:
    """Return the ordinal of the first pod."""
    ordinals = stateful_set.spec.ordinals
    return 0 if ordinals is None else ordinals.start


def _desired_ordinals(stateful_set: StatefulSet) -> range:
    start, replicas = first_ordinal(stateful_set), stateful_set.spec.replicas
    return range(start, start + (1 if replicas is None else replicas))


def steps(stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions, now: Instant) -> list[Step]:
    """Return what is to be done now, in this order; nothing means that something is waited for, or all is well.

    Args:
        stateful_set: What is asked for.
        pods: The pods that it owns, those that end included.
        revisions: Where it comes from and goes to.
        now: The time; a pod is available once it has been ready for ``minReadySeconds``.
    """
    found = {ordinal_of(pod.metadata.name, stateful_set.metadata.name): pod for pod in pods}
    desired = _desired_ordinals(stateful_set)
    view = _View(stateful_set, revisions, now)
    one_by_one = stateful_set.spec.pod_management_policy != "Parallel"
    result: list[Step] = []
    for ordinal in desired:
        pod = found.get(ordinal)
        if pod is None:
            result.append(Create(ordinal, view.revision_for(ordinal)))
        elif is_finished(pod) and not _is_terminating(pod):
            result.append(Delete(pod, ended=True))
        elif view.is_healthy(pod) or not one_by_one:
            continue
        if one_by_one:
            return result
    surplus = sorted(
        (ordinal for ordinal in found if ordinal is not None and ordinal not in desired), reverse=True
    )
    unhealthy = [ordinal for ordinal in surplus if not view.is_healthy(found[ordinal])]
    for ordinal in surplus:
        pod = found[ordinal]
        if not _is_terminating(pod) and (not one_by_one or view.is_healthy(pod) or ordinal == unhealthy[-1]):
            result.append(Delete(pod))
        if one_by_one:
            return result
    return result or view.updates([found[ordinal] for ordinal in desired if ordinal in found])


def next_look(stateful_set: StatefulSet, pods: Sequence[Pod], now: Instant) -> Instant | None:
    """Return when the next pod becomes available by mere passing of time."""
    min_ready = seconds(stateful_set.spec.min_ready_seconds)
    dues = (available_at(pod, min_ready) for pod in pods)
    return min((due for due in dues if due is not None and due > now), default=None)


def status_of(
    stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions, now: Instant
) -> StatefulSetStatus:
    """Return the status: the counts, and the current revision moved on when an update is complete."""
    view = _View(stateful_set, revisions, now)
    running = [pod for pod in pods if ordinal_of(pod.metadata.name, stateful_set.metadata.name) is not None]
    staying = [pod for pod in running if not _is_terminating(pod)]
    replicas = len(running)
    ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in running)
    updated = sum(_revision(pod) == revisions.update for pod in staying)
    current, of_current = revisions.current, sum(_revision(pod) == revisions.current for pod in staying)
    if stateful_set.spec.update_strategy.type != "OnDelete" and updated == replicas == ready:
        current, of_current = revisions.update, updated
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=replicas,
        ready_replicas=ready,
        available_replicas=sum(view.is_available(pod) for pod in running),
        current_replicas=of_current,
        updated_replicas=updated,
        current_revision=current,
        update_revision=revisions.update,
        collision_count=stateful_set.status.collision_count or 0,
        conditions=stateful_set.status.conditions,
    )


class _View:
    """One StatefulSet at one time."""

    def __init__(self, stateful_set: StatefulSet, revisions: Revisions, now: Instant) -> None:
        self._set = stateful_set
        self._revisions = revisions
        self._now = now
        self._min_ready = seconds(stateful_set.spec.min_ready_seconds)
        rolling = stateful_set.spec.update_strategy.rolling_update
        self._partition = (rolling.partition or 0) if rolling is not None else 0
        self._max_unavailable = rolling.max_unavailable if rolling is not None else None

    def revision_for(self, ordinal: int) -> str:
        """Return the revision that a new pod is made from."""
        rolls = self._set.spec.update_strategy.type != "OnDelete"
        held_back = rolls and ordinal < first_ordinal(self._set) + self._partition
        return self._revisions.current if held_back else self._revisions.update

    def is_available(self, pod: Pod) -> bool:
        due = available_at(pod, self._min_ready)
        return pod.status.phase == "Running" and due is not None and due <= self._now

    def is_healthy(self, pod: Pod) -> bool:
        return self.is_available(pod) and not _is_terminating(pod)

    def updates(self, pods: Sequence[Pod]) -> list[Step]:
        """Return the outdated pods to be replaced now; ``pods`` are the desired ones, by ordinal."""
        if self._set.spec.update_strategy.type == "OnDelete":
            return []
        total = len(_desired_ordinals(self._set))
        most = 1
        if self._max_unavailable is not None:
            most = max(scaled_value(self._max_unavailable, total, round_up=False), 1)
        floor = first_ordinal(self._set) + self._partition
        above = [pod for pod in reversed(pods) if (ordinal_of_pod(pod) or 0) >= floor]
        if most == 1:
            for pod in above:
                if self._is_outdated(pod):
                    return [Delete(pod)]
                if not self.is_healthy(pod):
                    return []  # one at a time: this one has to come up first
            return []
        allowed = most - sum(not self.is_healthy(pod) for pod in pods)
        outdated: list[Step] = [Delete(pod) for pod in above if self._is_outdated(pod)]
        return outdated[: max(allowed, 0)]

    def _is_outdated(self, pod: Pod) -> bool:
        return _revision(pod) != self._revisions.update and not _is_terminating(pod)


def ordinal_of_pod(pod: Pod) -> int | None:
    """Return the number at the end of the pod's name."""
    return ordinal_of(pod.metadata.name, pod.metadata.name.rpartition("-")[0])


def _revision(pod: Pod) -> str:
    return (pod.metadata.labels or {}).get(REVISION_LABEL, "")


def _is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None
