"""What changes of objects say, as facts without generated names.

A pod of a workload is called after it and its number in the order of creation: ``web#1-2`` is the second pod of the
first ReplicaSet of web. Where a timeline does not tell equals apart, it is ``web#1-*``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubetide.objects.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PDBS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from kubetide.objects.meta import ApiObject, controller_of
from kubetide.objects.node import Node, node_condition
from kubetide.objects.pod import Pod, pod_condition
from kubetide.objects.workload import ReplicaSet

WATCHED = (PODS, NODES, REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, PDBS)

_COUNTS: dict[str, tuple[str, ...]] = {
    "ReplicaSet": ("replicas", "ready_replicas", "available_replicas"),
    "Deployment": (
        "observed_generation",
        "replicas",
        "updated_replicas",
        "ready_replicas",
        "available_replicas",
        "unavailable_replicas",
    ),
    "StatefulSet": ("observed_generation", "replicas", "ready_replicas", "available_replicas"),
    "DaemonSet": (
        "observed_generation",
        "desired_number_scheduled",
        "current_number_scheduled",
        "updated_number_scheduled",
        "number_ready",
        "number_available",
        "number_unavailable",
        "number_misscheduled",
    ),
    "Job": ("active", "ready", "terminating", "succeeded", "failed"),
    "PodDisruptionBudget": ("expected_pods", "desired_healthy", "current_healthy", "disruptions_allowed"),
}
"""By kind, the counts of its status that are facts."""

_NAMED = frozenset({"StatefulSet"})
"""Kinds whose pods have names that are not generated."""


class Fact(NamedTuple):
    """Something that has become so.

    Attributes:
        field: What of the object it says; of a field that changes again at once only the last value is a fact. Empty
            for what happens and does not last.
    """

    about: str
    field: str
    value: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.about, self.field, self.value) if part)


class Labels:
    """The labels of objects, by uid, in the order in which they come."""

    def __init__(self) -> None:
        self._by_uid: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self.names: dict[str, str] = {}
        """By label, the name of the object."""

    def of(self, found: ApiObject) -> str:
        """Return the label of an object, a new one where it is new."""
        meta = found.metadata
        if meta.uid not in self._by_uid:
            label = self._label(found)
            self._by_uid[meta.uid] = label
            self.names[label] = meta.name
        return self._by_uid[meta.uid]

    def _label(self, found: ApiObject) -> str:
        owner = controller_of(found.metadata)
        if owner is None or owner.kind in _NAMED:
            return found.metadata.name
        if isinstance(found, ReplicaSet):
            return self._of_replica_set(owner.name, found.metadata.uid)
        if owner.kind == "ReplicaSet":
            of = self._of_replica_set(owner.name.rpartition("-")[0], owner.uid)
            return self._numbered(f"{of}-")
        return self._numbered(f"{owner.name}-")

    def _of_replica_set(self, deployment: str, uid: str) -> str:
        """The label of a ReplicaSet; one of its pods may come to be known before it."""
        if uid not in self._by_uid:
            self._by_uid[uid] = self._numbered(f"{deployment}#")
        return self._by_uid[uid]

    def _numbered(self, prefix: str) -> str:
        self._numbers[prefix] = self._numbers.get(prefix, 0) + 1
        return f"{prefix}{self._numbers[prefix]}"


def facts_of(kind: str, label: str, old: Any, new: Any) -> Iterator[Fact]:
    """Yield what a change of an object says; None means absent."""
    about = f"{kind} {label}"
    if kind == "Pod":
        yield from _of_pod(about, old, new)
        return
    if kind == "Node":
        yield from _of_node(about, old, new)
        return
    if old is None:
        yield Fact(about, "", "created")
    if new is None:
        yield Fact(about, "", "gone")
        return
    if new.metadata.deletion_timestamp and (old is None or not old.metadata.deletion_timestamp):
        yield Fact(about, "", "terminating")
    if isinstance(new, ReplicaSet) and (old is None or old.spec.replicas != new.spec.replicas):
        yield Fact(about, "scaled to", str(new.spec.replicas))
    for name in _COUNTS[kind]:
        before = 0 if old is None else getattr(old.status, name) or 0
        now = getattr(new.status, name) or 0
        if before != now:
            yield Fact(about, name, str(now))
    if kind in {"Deployment", "Job"}:
        known = {} if old is None else {one.type: one for one in old.status.conditions or ()}
        for one in new.status.conditions or ():
            before = known.get(one.type)
            if before is None or (before.status, before.reason) != (one.status, one.reason):
                yield Fact(about, one.type, f"{one.status} {one.reason}")


def _of_pod(about: str, old: Pod | None, new: Pod | None) -> Iterator[Fact]:
    if new is None:
        yield Fact(about, "", "gone")
        return
    if old is None:
        owner = controller_of(new.metadata)
        yield Fact(about, "", "created" if owner is None else f"created by {owner.kind}")
    scheduled = pod_condition(new, "PodScheduled")
    before = None if old is None else pod_condition(old, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        said = _refusal(scheduled.message)
        if before is None or _refusal(before.message) != said:
            yield Fact(about, "", f"refused: {scheduled.reason}: {said}")
    nominated = new.status.nominated_node_name
    if nominated and (old is None or old.status.nominated_node_name != nominated):
        yield Fact(about, "", f"nominated to {nominated}")
    if new.spec.node_name and (old is None or not old.spec.node_name):
        yield Fact(about, "", f"bound to {new.spec.node_name}")
    for kind in ("Ready", "DisruptionTarget"):
        condition = pod_condition(new, kind)
        known = None if old is None else pod_condition(old, kind)
        if condition is not None and (known is None or known.status != condition.status):
            yield Fact(about, "", f"{kind}={condition.status} {condition.reason}".rstrip())
    if new.status.phase in {"Succeeded", "Failed"} and (old is None or old.status.phase != new.status.phase):
        yield Fact(about, "", new.status.phase)
    if new.metadata.deletion_timestamp and (old is None or not old.metadata.deletion_timestamp):
        yield Fact(about, "", f"terminating, grace {new.metadata.deletion_grace_period_seconds}")


def _refusal(message: str | None) -> str:
    """Return a refusal without what follows about devices and preemption, which the embedded scheduler leaves out."""
    return (message or "").partition(". ")[0].rstrip(".")


def _of_node(about: str, old: Node | None, new: Node | None) -> Iterator[Fact]:
    if new is None:
        return  # a step has deleted it
    before = set() if old is None else {(one.key, one.effect) for one in old.spec.taints or ()}
    now = {(one.key, one.effect) for one in new.spec.taints or ()}
    if old is not None:
        # What a node has from the beginning is the step's, not the control plane's.
        for key, effect in sorted(now - before):
            yield Fact(about, "", f"gets taint {key}:{effect}")
        for key, effect in sorted(before - now):
            yield Fact(about, "", f"loses taint {key}:{effect}")
    ready = node_condition(new, "Ready")
    known = None if old is None else node_condition(old, "Ready")
    if old is not None and ready is not None and (known is None or known.status != ready.status):
        yield Fact(about, "", f"Ready={ready.status}")
