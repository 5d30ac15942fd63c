"""Which pods belong to which controller object, with the counts that statuses need.

One index serves all workload controllers. It follows the changes of a shared informer, so that
a controller's sync costs no walk over pods unless it has pods to make or to remove.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

import msgspec

from kubetide.objects.meta import Key, OwnerReference, controller_of
from kubetide.objects.pod import Pod, is_finished, pod_condition
from kubetide.units.time import Duration, Instant, parse_rfc3339
from kubetide.watching import Informer

T = TypeVar("T")

Labels = frozenset[tuple[str, str]]


class OwnerHandler(Protocol):
    """Called with changes of the pods of one kind of owner."""

    def __call__(self, owner: Key, key: Key, pod: Pod | None, /, *, active: bool) -> None:
        """Take a change.

        Args:
            owner: The owner's namespace and name.
            key: The pod's.
            pod: None when it is gone or no longer owned.
            active: Whether the pod counted as a replica before or does now; else no count has changed.
        """


def follow(informer: Informer[T], handler: Callable[[Key, T | None, T | None], None]) -> None:
    """Call ``handler(key, old, new)`` for what the informer holds and for every later change."""
    for key, value in informer.objects.items():
        handler(key, None, value)
    informer.on_change(handler)


def is_active(pod: Pod) -> bool:
    """Return whether a pod counts as a replica: not finished and not being deleted."""
    return pod.metadata.deletion_timestamp is None and not is_finished(pod)


def is_ready(pod: Pod) -> bool:
    """Return whether the pod's Ready condition is true."""
    condition = pod_condition(pod, "Ready")
    return condition is not None and condition.status == "True"


def available_at(pod: Pod, min_ready: Duration) -> Instant | None:
    """Return when a pod counts as available: ``min_ready`` after it became ready; None while it is not ready."""
    condition = pod_condition(pod, "Ready")
    if condition is None or condition.status != "True":
        return None
    if not min_ready or condition.last_transition_time is None:
        return Instant(0)
    return Instant(parse_rfc3339(condition.last_transition_time) + min_ready)


class _Facts(msgspec.Struct, frozen=True):
    owner: OwnerReference | None
    active: bool
    ready: bool
    labels: Labels


class OwnedPods:
    """The pods of one controller object, finished and terminating ones too."""

    __slots__ = ("active", "label_sets", "pods", "ready")

    def __init__(self) -> None:
        self.pods: dict[Key, Pod] = {}
        self.active = 0
        self.ready = 0
        """Active pods that are ready."""
        self.label_sets: dict[Labels, int] = {}
        """How many active pods carry each set of labels."""

    def count(self, facts: _Facts, sign: int) -> None:
        """Add (+1) or take away (-1) one pod in the counts."""
        if not facts.active:
            return
        self.active += sign
        self.ready += sign * facts.ready
        count = self.label_sets.get(facts.labels, 0) + sign
        if count:
            self.label_sets[facts.labels] = count
        else:
            del self.label_sets[facts.labels]

    def active_pods(self) -> list[Pod]:
        """Return the pods that count as replicas."""
        return [pod for pod in self.pods.values() if is_active(pod)]


_NOTHING = OwnedPods()
_NO_PODS: Mapping[Key, Pod] = MappingProxyType({})


class PodIndex:
    """Pods by the uid of the object that controls them, and pods that nothing controls by namespace."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._facts: dict[Key, _Facts] = {}
        self._groups: dict[str, OwnedPods] = {}
        self._orphans: dict[str, dict[Key, Pod]] = {}
        self._handlers: dict[str, list[OwnerHandler]] = {}
        self._orphan_handlers: list[Callable[[Key, Pod], None]] = []
        follow(pods, self._change)

    def owned_by(self, uid: str) -> OwnedPods:
        """Return the pods that the object of that uid controls; read only."""
        return self._groups.get(uid, _NOTHING)

    def orphans(self, namespace: str) -> Mapping[Key, Pod]:
        """Return the namespace's pods that nothing controls; read only."""
        return self._orphans.get(namespace, _NO_PODS)

    def subscribe(
        self, owner_kind: str, handler: OwnerHandler, orphan_handler: Callable[[Key, Pod], None] | None = None
    ) -> None:
        """Call ``handler`` when a pod of an owner of that kind comes, goes, or changes in what is counted."""
        self._handlers.setdefault(owner_kind, []).append(handler)
        for key, facts in self._facts.items():
            if facts.owner is not None and facts.owner.kind == owner_kind:
                pod = self._groups[facts.owner.uid].pods[key]
                handler((key[0], facts.owner.name), key, pod, active=facts.active)
        if orphan_handler is not None:
            self._orphan_handlers.append(orphan_handler)
            for orphans in self._orphans.values():
                for key, pod in orphans.items():
                    orphan_handler(key, pod)

    def _change(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        before = self._facts.get(key)
        after = None if new is None else self._facts_of(new, old, before)
        if before is not None and (after is None or after.owner != before.owner):
            self._take_out(key, before)
            if after is not None:
                self._notify(before, key, None, active=before.active)
            before_counted = None
        else:
            before_counted = before
        if new is None or after is None:
            self._facts.pop(key, None)
            if before is not None:
                self._notify(before, key, None, active=before.active)
            return
        self._facts[key] = after
        self._put_in(key, new, after, before_counted)
        if before != after:
            self._notify(after, key, new, active=after.active or (before is not None and before.active))
            if after.owner is None:
                for handler in self._orphan_handlers:
                    handler(key, new)

    @staticmethod
    def _facts_of(pod: Pod, old: Pod | None, before: _Facts | None) -> _Facts:
        meta = pod.metadata
        if before is not None and old is not None and old.metadata.labels == meta.labels:
            labels = before.labels
        else:
            labels = frozenset((meta.labels or {}).items())
        active = is_active(pod)
        return _Facts(controller_of(meta), active, active and is_ready(pod), labels)

    def _put_in(self, key: Key, pod: Pod, facts: _Facts, counted: _Facts | None) -> None:
        if facts.owner is None:
            self._orphans.setdefault(key[0], {})[key] = pod
            return
        group = self._groups.get(facts.owner.uid)
        if group is None:
            group = self._groups[facts.owner.uid] = OwnedPods()
        group.pods[key] = pod
        if counted != facts:
            if counted is not None:
                group.count(counted, -1)
            group.count(facts, 1)

    def _take_out(self, key: Key, facts: _Facts) -> None:
        if facts.owner is None:
            orphans = self._orphans[key[0]]
            del orphans[key]
            if not orphans:
                del self._orphans[key[0]]
            return
        group = self._groups[facts.owner.uid]
        del group.pods[key]
        group.count(facts, -1)
        if not group.pods:
            del self._groups[facts.owner.uid]

    def _notify(self, facts: _Facts, key: Key, pod: Pod | None, *, active: bool) -> None:
        owner = facts.owner
        if owner is not None:
            for handler in self._handlers.get(owner.kind, ()):
                handler((key[0], owner.name), key, pod, active=active)
