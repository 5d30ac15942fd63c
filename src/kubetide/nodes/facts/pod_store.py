"""The pods that the node loop knows: by key, pending ones, and those of each controller."""

from __future__ import annotations

from operator import itemgetter

from kubetide.objects.meta import Key, OwnerReference, controller_of
from kubetide.objects.pod import Pod


class HeldPods:
    """All pods of a state. Readers must not change what they get.

    Attributes:
        by_key: Every pod.
        pending: Those that have no node and are not nominated to one, in no given order.
    """

    def __init__(self) -> None:
        self.by_key: dict[Key, Pod] = {}
        self.pending: dict[Key, Pod] = {}
        self._by_owner: dict[str, dict[Key, Pod]] | None = None
        """Made when first asked for: only demand that is announced by workload reads it."""

    def put(self, key: Key, pod: Pod) -> None:
        """Add or replace a pod."""
        if self._by_owner is not None:
            self._forget_owner(key)
            _hold(self._by_owner, key, pod)
        self.by_key[key] = pod
        if pod.spec.node_name or pod.status.nominated_node_name:
            self.pending.pop(key, None)
        else:
            self.pending[key] = pod

    def drop(self, key: Key) -> Pod | None:
        """Remove a pod and return it; None if it is unknown."""
        if self._by_owner is not None:
            self._forget_owner(key)
        self.pending.pop(key, None)
        return self.by_key.pop(key, None)

    def controlled_by(self, owner_uid: str) -> list[Pod]:
        """Return the pods that an object controls and that are not being deleted, in name order."""
        return [pod for _, pod in sorted(self._owned().get(owner_uid, {}).items(), key=itemgetter(0))]

    def count_controlled_by(self, owner_uid: str) -> int:
        """Return the number of ``controlled_by``."""
        return len(self._owned().get(owner_uid, ()))

    def controllers(self) -> list[tuple[str, str, OwnerReference]]:
        """Return uid, namespace and reference of each object that controls pods, in order of uid."""
        found = []
        for uid, pods in sorted(self._owned().items()):
            metadata = next(iter(pods.values())).metadata
            owner = controller_of(metadata)
            assert owner is not None, "pods are held by their controller"
            found.append((uid, metadata.namespace, owner))
        return found

    def _owned(self) -> dict[str, dict[Key, Pod]]:
        if self._by_owner is None:
            self._by_owner = {}
            for key, pod in self.by_key.items():
                _hold(self._by_owner, key, pod)
        return self._by_owner

    def _forget_owner(self, key: Key) -> None:
        pod = self.by_key.get(key)
        if pod is None or self._by_owner is None or (owner := controller_of(pod.metadata)) is None:
            return
        held = self._by_owner.get(owner.uid)
        if held is not None and held.pop(key, None) is not None and not held:
            del self._by_owner[owner.uid]


def _hold(held: dict[str, dict[Key, Pod]], key: Key, pod: Pod) -> None:
    owner = controller_of(pod.metadata)
    if owner is not None and not pod.metadata.deletion_timestamp:
        held.setdefault(owner.uid, {})[key] = pod
