"""Chooses nodes for pods: scoring, with what it looks up beside nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.embedded.controllers.workloads.owned_pods import follow
from kubetide.objects.meta import Key, LabelSelector, controller_of
from kubetide.objects.pod import Pod
from kubetide.objects.service import Service
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import ReplicaSet
from kubetide.scheduling import PodClass
from kubetide.scheduling.scoring import (
    DEFAULT,
    NodeChooser,
    OwnerKey,
    OwnerSelectors,
    ScoredSnapshot,
    default_selector,
    incoming,
    profile_of,
)
from kubetide.units.recent import Recent
from kubetide.units.selectors import Selector
from kubetide.watching import Informer

_APPS = "apps/v1"
_MOST_SPREADS = 1 << 13
_NONE = object()


class PodChooser:
    """Chooses as kube-scheduler does with a profile.

    Args:
        profile: Name of a profile of scoring.
        seed: What is drawn where upstream's choice is random.
        owners: ReplicaSets and StatefulSets, from whose pods the system spreads those that say nothing
            of it; these are not spread without.
        services: Services, from whose pods the system spreads them as well.

    Raises: ValueError for a name that no profile has.
    """

    def __init__(
        self,
        profile: str = DEFAULT,
        seed: int = 0,
        owners: tuple[Informer[ReplicaSet], Informer[StatefulSet]] | None = None,
        services: Informer[Service] | None = None,
    ) -> None:
        self._nodes = NodeChooser(profile_of(profile), seed)
        self._owners: dict[OwnerKey, LabelSelector | None] = {}
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        self._known = OwnerSelectors(owners=self._owners)
        self._spreads: Recent[tuple[str, PodClass], tuple[Selector | None]] = Recent(_MOST_SPREADS)
        if owners is not None:
            follow(owners[0], self._replica_set_changed)
            follow(owners[1], self._stateful_set_changed)
        if services is not None:
            follow(services, self._service_changed)

    def choose(self, pod: Pod, pod_class: PodClass, snapshot: ScoredSnapshot) -> str | None:
        """Return the node for a pod of the class, or None where none takes it.

        Raises: ScoreError for a pod that cannot be scored.
        """
        spread = None if pod_class.preferences.is_spread else self._spread(pod, pod_class)
        given = incoming(pod, pod_class, spread, images=bool(snapshot.images), minor=snapshot.facts.minor)
        return self._nodes.choose(given, snapshot)

    def _spread(self, pod: Pod, pod_class: PodClass) -> Selector | None:
        owner = controller_of(pod.metadata)
        if owner is None:
            return default_selector(pod, self._known)
        key = owner.uid, pod_class
        found = self._spreads.get(key)
        if found is None:
            # In a tuple, as None is an answer too.
            found = (default_selector(pod, self._known),)
            self._spreads.put(key, found)
        return found[0]

    def _replica_set_changed(self, key: Key, _old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        self._put((_APPS, "ReplicaSet", *key), new)

    def _stateful_set_changed(self, key: Key, _old: StatefulSet | None, new: StatefulSet | None) -> None:
        self._put((_APPS, "StatefulSet", *key), new)

    def _service_changed(self, key: Key, _old: Service | None, new: Service | None) -> None:
        namespace, name = key
        selector = None if new is None else new.spec.selector
        of_namespace = self._services.setdefault(namespace, {})
        if of_namespace.get(name) == selector:
            return
        if selector is None:
            del of_namespace[name]
        else:
            of_namespace[name] = selector
        services = {space: tuple(named.values()) for space, named in self._services.items()}
        self._known = msgspec.structs.replace(self._known, services=services)
        self._forget()

    def _forget(self) -> None:
        self._spreads = Recent(_MOST_SPREADS)

    def _put(self, key: OwnerKey, owner: ReplicaSet | StatefulSet | None) -> None:
        if owner is None:
            self._owners.pop(key, None)
        elif self._owners.get(key, _NONE) == owner.spec.selector:
            return
        else:
            self._owners[key] = owner.spec.selector
        self._forget()
