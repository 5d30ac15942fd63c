"""Pods with only what the loop reads.

Pods are many, so those of one owner share all that is equal: what a pod has for itself is its name, its uid
and its node.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern

from msgspec.structs import force_setattr, replace

from kubetide.nodes.facts.slimming import slim_meta
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, Volume
from kubetide.objects.sharing import take_over
from kubetide.units.recent import Recent

_KEPT_CONDITIONS = frozenset(("PodScheduled", "PodResizePending", "PodResizeInProgress"))

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
_TEXTS_OF_OWNER = ("api_version", "kind", "name", "uid")

_set = force_setattr


class PodSlimmer:
    """Slims pods as ``slim_pod`` does, and shares equal parts between pods of one owner."""

    def __init__(self) -> None:
        self._last_of: Recent[str, Pod] = Recent(_MOST_OWNERS)
        self._times: Recent[str, str] = Recent(_MOST_TIMES)

    def slim(self, pod: Pod) -> Pod:
        """Return the pod with only what the loop reads. Its parts are shared and must not be changed."""
        like = self._like(pod)
        small = slim_pod(pod, like=like)
        self._remember(small, like)
        return small

    def keep(self, pod: Pod) -> Pod:
        """Like ``slim``, but consumes the pod: its own parts are shared as well."""
        like = self._like(pod)
        small = slim_pod(pod, like=like)
        meta, spec = small.metadata, small.spec
        if like is not None and spec is pod.spec:
            spec = _shared(spec, like.spec)
            _set(small, "spec", spec)
        if spec.node_name:
            _set(spec, "node_name", intern(spec.node_name))
        if (created := meta.creation_timestamp) is not None:
            known = self._times.get(created)
            if known is None:
                self._times.put(created, created)
            else:
                _set(meta, "creation_timestamp", known)
        _set(meta, "namespace", intern(meta.namespace))
        if meta.labels and (like is None or meta.labels is not like.metadata.labels):
            _set(meta, "labels", {intern(key): intern(value) for key, value in meta.labels.items()})
        if like is None or meta.owner_references is not like.metadata.owner_references:
            for owner in meta.owner_references or ():
                for field in _TEXTS_OF_OWNER:
                    _set(owner, field, intern(getattr(owner, field)))
        self._remember(small, like)
        return small

    def _like(self, pod: Pod) -> Pod | None:
        owners = pod.metadata.owner_references
        return self._last_of.get(owners[0].uid) if owners else None

    def _remember(self, pod: Pod, like: Pod | None) -> None:
        """Note what the next pod of the owner may be like, unless that would be the same."""
        meta = pod.metadata
        if (
            like is not None
            and meta.labels is like.metadata.labels
            and pod.spec.containers is like.spec.containers
        ):
            return
        if owners := meta.owner_references:
            self._last_of.put(owners[0].uid, pod)


def slim_pod(pod: Pod, *, like: Pod | None = None) -> Pod:
    """Return the pod without the kubelet's status, except resources and why it is not scheduled.

    Projected volumes go as well: nearly every pod has one with a token, under a name of its own, and no rule
    looks into it.

    Args:
        like: A slim pod that may have much in common with this one: what is equal is taken over from it.
    """
    status = _status(pod.status)
    if like is None:
        return Pod(metadata=slim_meta(pod.metadata), spec=_spec(pod.spec, None), status=status)
    if status == like.status:
        status = like.status
    meta = slim_meta(pod.metadata, like=like.metadata)
    return Pod(metadata=meta, spec=_spec(pod.spec, like.spec), status=status)


def _spec(spec: PodSpec, like: PodSpec | None) -> PodSpec:
    dropped: list[str] = []
    slim: list[Volume] = []
    for volume in spec.volumes or ():
        if volume.projected is None:
            slim.append(volume)
        else:
            dropped.append(volume.name)
    if not dropped:
        return spec
    made = replace(
        spec,
        volumes=tuple(slim) or None,
        containers=_unmounted(spec.containers, dropped),
        init_containers=_unmounted(spec.init_containers, dropped),
    )
    return made if like is None else _shared(made, like)


def _shared(own: PodSpec, like: PodSpec) -> PodSpec:
    """Return the spec, which nobody else has, with what is equal in another one taken over from that."""
    node_name = own.node_name
    # But for the node most are equal, and comparing whole is quicker than by field.
    _set(own, "node_name", like.node_name)
    if own == like:
        return replace(like, node_name=node_name)
    _set(own, "node_name", node_name)
    take_over(own, like, _PARTS_OF_SPEC)
    return own


def _unmounted(containers: tuple[Container, ...] | None, names: list[str]) -> tuple[Container, ...] | None:
    return None if containers is None else tuple([_without_mounts(one, names) for one in containers])


def _without_mounts(container: Container, names: list[str]) -> Container:
    mounts = container.volume_mounts
    if not mounts:
        return container
    return replace(container, volume_mounts=tuple([one for one in mounts if one.name not in names]) or None)


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
    if not statuses:
        return None
    slim = [
        ContainerStatus(name=one.name, resources=one.resources, allocated_resources=one.allocated_resources)
        for one in statuses
        if one.resources is not None or one.allocated_resources is not None
    ]
    return tuple(slim) or None
