"""Pods with only what the loop reads.

Pods are many, so those of one owner share all that is equal: what a pod has for itself is its name, its uid
and its node.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import TypeVar

from msgspec.structs import force_setattr, replace

from kubetide.nodes.slimming import slim_meta
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus
from kubetide.objects.sharing import take_over
from kubetide.units.recent import Recent

T = TypeVar("T")

_KEPT_CONDITIONS = ("PodScheduled", "PodResizePending", "PodResizeInProgress")

_MOST_OWNERS = 8_192
"""Owners whose pods share; those of which no pod was seen for longest are forgotten."""

_MOST_TIMES = 4_096
"""Texts of times: many pods are made in the same second."""

_PARTS_OF_SPEC = (
    "containers",
    "tolerations",
    "volumes",
    "init_containers",
    "affinity",
    "node_selector",
    "topology_spread_constraints",
    "resources",
    "overhead",
    "resource_claims",
    "scheduler_name",
    "restart_policy",
    "priority_class_name",
)
_PARTS_OF_METADATA = ("labels", "annotations", "owner_references")
_TEXTS_OF_OWNER = ("api_version", "kind", "name", "uid")

_set = force_setattr


class PodSlimmer:
    """Slims pods as ``slim_pod`` does; those of one owner share what is equal."""

    def __init__(self) -> None:
        self._last_of: Recent[str, Pod] = Recent(_MOST_OWNERS)
        self._times: Recent[str, str] = Recent(_MOST_TIMES)

    def slim(self, pod: Pod) -> Pod:
        """Gives the pod with only what the loop reads. What is in it is shared, so nobody may change it."""
        like = self._like(pod)
        return self._remembered(slim_pod(pod, like=like))

    def keep(self, pod: Pod) -> Pod:
        """As ``slim``, of a pod that is only made into such forms: what it consists of is shared as well."""
        like = self._like(pod)
        small = slim_pod(pod, like=like)
        meta, spec = small.metadata, small.spec
        _set(meta, "namespace", intern(meta.namespace))
        if (created := meta.creation_timestamp) is not None:
            known = self._times.get(created)
            if known is None:
                self._times.put(created, created)
            else:
                _set(meta, "creation_timestamp", known)
        _set(spec, "node_name", intern(spec.node_name))
        if like is not None:
            take_over(spec, like.spec, _PARTS_OF_SPEC)
        if meta.labels and (like is None or meta.labels is not like.metadata.labels):
            _set(meta, "labels", {intern(key): intern(value) for key, value in meta.labels.items()})
        if like is None or meta.owner_references is not like.metadata.owner_references:
            for owner in meta.owner_references or ():
                for field in _TEXTS_OF_OWNER:
                    _set(owner, field, intern(getattr(owner, field)))
        return self._remembered(small)

    def _like(self, pod: Pod) -> Pod | None:
        owners = pod.metadata.owner_references
        return self._last_of.get(owners[0].uid) if owners else None

    def _remembered(self, pod: Pod) -> Pod:
        owners = pod.metadata.owner_references
        if owners:
            self._last_of.put(owners[0].uid, pod)
        return pod


def slim_pod(pod: Pod, *, like: Pod | None = None) -> Pod:
    """Gives the pod without what its kubelet reports, but for resources and why it is not scheduled.

    Projected volumes go as well: nearly every pod has one with a token, under a name of its own, and no rule
    looks into it.

    Args:
        like: A slim pod that may have much in common with this one: what is equal is taken over from it.
    """
    meta, spec = slim_meta(pod.metadata), _spec(pod.spec, None if like is None else like.spec)
    if like is not None:
        take_over(meta, like.metadata, _PARTS_OF_METADATA)
    return Pod(metadata=meta, spec=spec, status=_status(pod.status))


def _spec(spec: PodSpec, like: PodSpec | None = None) -> PodSpec:
    volumes = spec.volumes
    if not volumes:
        return spec
    dropped = [volume.name for volume in volumes if volume.projected is not None]
    if not dropped:
        return spec
    kept = tuple([volume for volume in volumes if volume.projected is None]) or None
    containers = _unmounted(spec.containers, dropped)
    first = _unmounted(spec.init_containers, dropped)
    if like is not None:
        kept = _once(kept, like.volumes)
        containers = _once(containers, like.containers)
        first = _once(first, like.init_containers)
    return replace(spec, volumes=kept, containers=containers, init_containers=first)


def _unmounted(containers: tuple[Container, ...] | None, names: list[str]) -> tuple[Container, ...] | None:
    if not containers:
        return containers
    return tuple(
        [
            replace(one, volume_mounts=tuple([m for m in one.volume_mounts if m.name not in names]) or None)
            if one.volume_mounts
            else one
            for one in containers
        ]
    )


def _once(own: T, known: T) -> T:
    """Gives the known one where both are equal."""
    return known if own is not None and own == known else own


def _status(status: PodStatus) -> PodStatus:
    conditions = tuple(
        [
            (one.type, one.status, one.reason)
            for one in status.conditions or ()
            if one.type in _KEPT_CONDITIONS
        ]
    )
    plain = _plain_status(status.phase, conditions, status.nominated_node_name)
    containers, first = _resized(status.container_statuses), _resized(status.init_container_statuses)
    claims = status.resource_claim_statuses
    if not (containers or first or status.resources or status.allocated_resources or claims):
        return plain
    return replace(
        plain,
        resource_claim_statuses=claims,
        container_statuses=containers,
        init_container_statuses=first,
        resources=status.resources,
        allocated_resources=status.allocated_resources,
    )


# Nearly all pods have one of a few.
@lru_cache(maxsize=1 << 10)
def _plain_status(phase: str, conditions: tuple[tuple[str, str, str], ...], nominated: str) -> PodStatus:
    return PodStatus(
        phase=phase,
        conditions=tuple([Condition(type=t, status=s, reason=r) for t, s, r in conditions]) or None,
        nominated_node_name=nominated,
    )


def _resized(statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
    kept = tuple(
        ContainerStatus(name=one.name, resources=one.resources, allocated_resources=one.allocated_resources)
        for one in statuses or ()
        if one.resources is not None or one.allocated_resources is not None
    )
    return kept or None
