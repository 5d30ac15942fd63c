"""Default spreading of pods without constraints: over pods of their Services and their owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubetide.objects.meta import LabelSelector, controller_of
from kubetide.objects.pod import Pod
from kubetide.units.selectors import Requirement, Selector, SelectorError

OwnerKey = tuple[str, str, str, str]
"""apiVersion, kind, namespace, name"""

_BY_SELECTOR = {("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}
_BY_LABELS = ("v1", "ReplicationController")


class OwnerSelectors(msgspec.Struct, frozen=True):
    """Selectors of Services and owners, as default spreading looks them up.

    Attributes:
        services: By namespace, the selectors of its Services; those without one are left out.
        owners: The selectors of ReplicaSets and StatefulSets.
        controllers: The selectors of ReplicationControllers.
    """

    services: Mapping[str, Iterable[Mapping[str, str]]] = {}
    owners: Mapping[OwnerKey, LabelSelector | None] = {}
    controllers: Mapping[OwnerKey, Mapping[str, str]] = {}


def default_selector(pod: Pod, known: OwnerSelectors) -> Selector | None:
    """Return the selector of default spreading for a pod, or None.

    Selectors of the Services that mean the pod and of a ReplicationController are merged label by
    label, so that of two values for one label the last stays; that of a ReplicaSet or StatefulSet
    must hold as well.

    Source: kube-scheduler v1.36 DefaultSelector.
    """
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    merged: dict[str, str] = {}
    for selector in known.services.get(namespace, ()):
        if all(labels.get(key) == value for key, value in selector.items()):
            merged.update(selector)
    more: tuple[Requirement, ...] = ()
    owner = controller_of(pod.metadata)
    if owner is not None:
        key = (owner.api_version, owner.kind, namespace, owner.name)
        if key[:2] == _BY_LABELS:
            merged.update(known.controllers.get(key, {}))
        elif key[:2] in _BY_SELECTOR and (given := known.owners.get(key)) is not None:
            more = _requirements(given)
    requirements = [Requirement(key, "=", (value,)) for key, value in merged.items()]
    every = sorted((*requirements, *more), key=lambda one: one.key)
    return Selector(tuple(every)) if every else None


def _requirements(given: LabelSelector) -> tuple[Requirement, ...]:
    try:
        return Selector.from_object(given).requirements
    except SelectorError:
        return ()
