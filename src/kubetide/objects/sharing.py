"""What many objects of a cache have in common is held once: texts, and what pods of one owner have of one template."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import TypeVar

import msgspec

from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.pod import Pod
from kubetide.units.recent import Recent

T = TypeVar("T")

_MOST_OWNERS = 8_192
_OF_SPEC = (
    "tolerations",
    "volumes",
    "affinity",
    "topology_spread_constraints",
    "node_selector",
    "init_containers",
    "containers",
    "priority_class_name",
    "restart_policy",
    "scheduler_name",
)
# Names of token volumes, and so mounts, differ from pod to pod.
_OF_CONTAINER = ("name", "image", "resources", "resize_policy", "ports", "restart_policy_rules")
_OF_METADATA = ("labels", "annotations")
_OF_STATUS = ("phase", "container_statuses", "init_container_statuses")
# Not their times.
_OF_CONDITION = ("type", "status", "reason")

_set = msgspec.structs.force_setattr


_known: Recent[str, Pod] = Recent(_MOST_OWNERS)
"""The last pod of each owner, by the owner's uid. What is in it is shared by many pods, so nobody may change it."""


_MOST_TIMES = 4_096
_times: dict[str, str] = {}
"""Each text of a time once: most of a pod's times are of the second in which it became ready."""


def shared(item: T) -> T:
    """Return the object back, texts that many objects bear made one object in memory.

    Nobody but the caller may have the object yet. Names, uids and versions are left alone, as no two objects
    have the same; plain JSON too: it is for looking at, not for keeping.
    """
    meta = getattr(item, "metadata", None)
    if not isinstance(meta, ObjectMeta):
        return item
    _intern(meta, ("namespace",))
    if meta.labels:
        _set(meta, "labels", {intern(key): intern(value) for key, value in meta.labels.items()})
    for owner in meta.owner_references or ():
        _intern(owner, ("api_version", "kind", "name", "uid"))
    if isinstance(item, HorizontalPodAutoscaler):
        _share_of_hpa(item)
    elif isinstance(item, Pod):
        if item.spec.node_name:
            _intern(item.spec, ("node_name",))
        _share_of_pod(item)
    return item


def _intern(item: msgspec.Struct, fields: Sequence[str]) -> None:
    for field in fields:
        _set(item, field, intern(getattr(item, field)))


def _share_of_hpa(hpa: HorizontalPodAutoscaler) -> None:
    _intern(hpa.spec.scale_target_ref, ("api_version", "kind"))
    for metric in hpa.spec.metrics or ():
        _intern(metric, ("type",))
        if metric.resource is not None:
            _intern(metric.resource, ("name",))
            _intern(metric.resource.target, ("type",))
    for current in hpa.status.current_metrics or ():
        _intern(current, ("type",))
        if current.resource is not None:
            _intern(current.resource, ("name",))
    _bound_times()
    for condition in hpa.status.conditions or ():
        _intern(condition, ("type", "status", "reason", "message"))
        _share_time(condition)


def _share_of_pod(pod: Pod) -> None:
    """Put what a pod has in common with one of the same owner in place of its own."""
    _share_times(pod)
    owners = pod.metadata.owner_references
    if not owners:
        return
    uid = owners[0].uid
    known = _known.get(uid)
    _known.put(uid, pod)
    if known is None:
        return
    if owners == known.metadata.owner_references:
        _set(pod.metadata, "owner_references", known.metadata.owner_references)
    take_over(pod.metadata, known.metadata, _OF_METADATA)
    take_over(pod.spec, known.spec, _OF_SPEC)
    take_over(pod.status, known.status, _OF_STATUS)
    if pod.spec.containers is not known.spec.containers:
        _each_takes_over(pod.spec.containers, known.spec.containers, _OF_CONTAINER)
    _each_takes_over(pod.status.conditions, known.status.conditions, _OF_CONDITION)


def _bound_times() -> None:
    if len(_times) > _MOST_TIMES:
        _times.clear()


def _share_time(condition: Condition) -> None:
    if (changed := condition.last_transition_time) is not None:
        _set(condition, "last_transition_time", _times.setdefault(changed, changed))


def _share_times(pod: Pod) -> None:
    _bound_times()
    once = _times.setdefault
    if (created := pod.metadata.creation_timestamp) is not None:
        _set(pod.metadata, "creation_timestamp", once(created, created))
    if (started := pod.status.start_time) is not None:
        _set(pod.status, "start_time", once(started, started))
    for condition in pod.status.conditions or ():
        _share_time(condition)


def _each_takes_over(
    mine: Sequence[msgspec.Struct] | None, theirs: Sequence[msgspec.Struct] | None, fields: tuple[str, ...]
) -> None:
    for one, other in zip(mine or (), theirs or (), strict=False):
        take_over(one, other, fields)


def take_over(mine: msgspec.Struct, theirs: msgspec.Struct, fields: tuple[str, ...]) -> None:
    """Put what is equal in one in place of what the other has; of that one nobody else knows yet."""
    for field in fields:
        own = getattr(mine, field)
        if own is not None:
            other = getattr(theirs, field)
            if own is not other and own == other:
                _set(mine, field, other)
