"""Similarity: pods of one controller that upstream's autoscaler treats alike, and nodes that columns hold alike.

Labels equal and specs semantically equal: quantities by value, absent and empty lists and maps
alike; projected volumes and their mounts do not count, as every pod has its own (service account
tokens). Fields that no rule reads (hostname, env and others) are not looked at.

Source: cluster-autoscaler core (Jul 2026), similar pods and equivalence groups.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from kubetide.objects.meta import controller_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from kubetide.scheduling.pods.exact_key import exact_key
from kubetide.units.quantity import Quantity, QuantityError

MAX_PER_CONTROLLER = 10
"""Distinct specs that are remembered for one controller."""

DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"

_QUANTITY_MAPS = frozenset({"requests", "limits", "overhead"})
_MAPS = frozenset({*_QUANTITY_MAPS, "nodeSelector", "matchLabels"})


def controller_uid(pod: Pod) -> str:
    """Return the UID of the pod's controller; empty without one and for DaemonSet pods."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind == "DaemonSet":
        return ""
    if (pod.metadata.annotations or {}).get(DAEMON_SET_POD) == "true":
        return ""
    return owner.uid


_MEMO_SIZE = 1 << 13

# Memos of pure functions of their keys: dropping them changes nothing but the time taken.
_canonical: dict[bytes, bytes] = {}
_normal_rest: dict[bytes, bytes] = {}


def similarity_key(pod: Pod) -> bytes:
    """Return a key of the pod's labels and relevant spec: equal for similar pods of one controller."""
    stripped = _stripped(pod.spec)
    raw = exact_key((pod.metadata.labels, stripped))
    canonical = _canonical.get(raw)
    if canonical is None:
        if len(_canonical) >= _MEMO_SIZE:
            _canonical.clear()
        canonical = _canonical[raw] = exact_key((pod.metadata.labels, *_normal_spec(stripped)))
    return canonical


def _normal_spec(spec: PodSpec) -> tuple[bytes, list[Any]]:
    """Return the spec without the amounts of containers, which is the same for many that differ in these, and the amounts."""
    amounts = [
        _normal("", msgspec.to_builtins(one.resources))
        for one in (*(spec.containers or ()), *(spec.init_containers or ()))
    ]
    rest = replace(
        spec,
        containers=_without_amounts(spec.containers),
        init_containers=_without_amounts(spec.init_containers),
    )
    raw = exact_key(rest)
    normal = _normal_rest.get(raw)
    if normal is None:
        if len(_normal_rest) >= _MEMO_SIZE:
            _normal_rest.clear()
        normal = _normal_rest[raw] = exact_key(_normal("", msgspec.to_builtins(rest)))
    return normal, amounts


def _without_amounts(containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
    return containers and tuple(replace(one, resources=ResourceRequirements()) for one in containers)


def _stripped(spec: PodSpec) -> PodSpec:
    projected = [volume.name for volume in spec.volumes or () if volume.projected is not None]
    if not projected:
        return spec
    return replace(
        spec,
        volumes=tuple(volume for volume in spec.volumes or () if volume.projected is None),
        containers=_unmounted(spec.containers, projected),
        init_containers=_unmounted(spec.init_containers, projected),
    )


def _unmounted(containers: tuple[Container, ...] | None, names: list[str]) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        replace(one, volume_mounts=tuple(m for m in one.volume_mounts or () if m.name not in names))
        for one in containers
    )


def _normal(name: str, value: Any) -> Any:
    if name in _QUANTITY_MAPS and isinstance(value, dict):
        return {key: _exact(text) for key, text in value.items()}
    if isinstance(value, dict):
        normal = {key: _normal(key, inner) for key, inner in value.items()}
        return {
            key: inner for key, inner in normal.items() if inner != [] and not (inner == {} and key in _MAPS)
        }
    if isinstance(value, (list, tuple)):
        return [_normal("", inner) for inner in value]
    return value


def _exact(text: Any) -> str:
    try:
        return str(Quantity.parse(text).exact_nano())
    except QuantityError:
        return f"unreadable {text}"


def same_for_scheduling(one: Node, other: Node) -> bool:
    """Return whether nothing changed that columns hold, as in every heartbeat."""
    return (
        one.spec == other.spec
        and one.metadata.labels == other.metadata.labels
        and one.status.allocatable == other.status.allocatable
        and one.status.declared_features == other.status.declared_features
    )
