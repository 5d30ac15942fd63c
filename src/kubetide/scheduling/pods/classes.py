"""From a pod to its class, and to the amounts and counts that columns hold of it.

Most pods of an owner are of one class, which is known at once where they share what filters read, as slim pods do.
Any other pod is known by the bytes of all that is read of it.
"""

from __future__ import annotations

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod, PodSpec
from kubetide.scheduling.pods.device_use import claims_of_pod
from kubetide.scheduling.pods.exact_key import exact_key
from kubetide.scheduling.pods.pod_class import Charges, PodClass, Unasked, Use, charges_of
from kubetide.scheduling.pods.resources import (
    SCORED,
    is_resized,
    pod_requests_on_node,
    scored_requests_on_node,
)
from kubetide.scheduling.pods.volume_use import claims_of, disks_of
from kubetide.units.quantity import QuantityError
from kubetide.units.recent import Recent

_MOST_BYTES = 64 << 20
"""Of classes that are cached, in each of two halves: ten thousand ordinary ones, or a few huge ones."""
_MOST_OWNERS = 1 << 13
_LONGEST_OF_OWNER = 1 << 14
"""Bytes of a class that its owner holds, too."""


def _size_by(key: bytes) -> int:
    """About how many bytes it takes to keep a class: its key is there as bytes, as read and as compiled."""
    return 4096 + 4 * len(key)


# Memos of pure functions of their keys: dropping them changes nothing but the time taken.
_classes: Recent[bytes, PodClass] = Recent(_MOST_BYTES, _size_by)
_resized: Recent[bytes, Charges] = Recent(_MOST_BYTES, _size_by)
_scored_uses: Recent[PodClass, Use] = Recent(1 << 13)
_last_of: dict[str, tuple[ObjectMeta, PodSpec, PodClass]] = {}
"""By the uid of an owner: its last pod, and the class of that."""


def classify(pod: Pod) -> PodClass:
    """Return the class of a pod to place. Never raises: see ``PodClass.error``."""
    return _class_of(pod, pod.spec.node_name)


def classify_unbound(pod: Pod) -> PodClass:
    """Return the class that the pod would have without a node: for a pod that must move."""
    meta, spec = pod.metadata, pod.spec
    owners = meta.owner_references
    if not owners or spec.resource_claims:
        return _class_of(pod, "")
    uid = owners[0].uid
    last = _last_of.get(uid)
    if last is not None and _shares(meta, spec, last[0], last[1]):
        return last[2]
    found = _class_of(pod, "")
    if len(found.key) > _LONGEST_OF_OWNER or (found.claims and any(one.owner for one in found.claims)):
        return found  # a volume is made for this very pod, or what would be cached is huge
    if len(_last_of) >= _MOST_OWNERS:
        _last_of.clear()
    _last_of[uid] = (meta, spec, found)
    return found


def _shares(meta: ObjectMeta, spec: PodSpec, last_meta: ObjectMeta, last: PodSpec) -> bool:
    """Return whether all that filters read of a pod is the same object in another one."""
    return (
        meta.labels is last_meta.labels
        and spec.containers is last.containers
        and spec.init_containers is last.init_containers
        and spec.tolerations is last.tolerations
        and spec.volumes is last.volumes
        and spec.affinity is last.affinity
        and spec.topology_spread_constraints is last.topology_spread_constraints
        and spec.node_selector is last.node_selector
        and spec.resources is last.resources
        and spec.overhead is last.overhead
        and spec.host_network == last.host_network
        and spec.host_users == last.host_users
        and meta.namespace == last_meta.namespace
    )


def use_of(pod: Pod, minor: int, pod_class: PodClass | None = None) -> Use:
    """Return what columns hold of a pod on a node; one object for nearly all pods of a class.

    Its class, as ``classify_unbound`` gives it, need not be made again where it is known.
    """
    if pod_class is None:
        pod_class = classify_unbound(pod)
    charges = charges_on_node(pod, minor, pod_class) if is_resized(pod) else pod_class.charges
    terminating = pod.metadata.deletion_timestamp is not None
    if terminating or charges != pod_class.charges:
        return Use(pod_class, charges, terminating)
    return pod_class.use


def scored_use_of(pod: Pod, minor: int, pod_class: PodClass | None = None) -> Use:
    """Return ``use_of`` with scoring's defaults for containers that do not name a resource."""
    use = use_of(pod, minor, pod_class)
    unasked: tuple[int, ...] = use.pod_class.preferences.unasked
    if use.charges is not use.pod_class.charges:
        try:
            requests = pod_requests_on_node(pod, minor)
            scored = scored_requests_on_node(pod, requests, minor)
            unasked = tuple(n - requests.get(name, 0) for name, n in zip(SCORED, scored, strict=True))
        except QuantityError:
            unasked = ()
    more = [(Unasked(name), amount) for name, amount in zip(SCORED, unasked, strict=False) if amount]
    if not more:
        return use
    if use is not use.pod_class.use:
        return Use(use.pod_class, (*use.charges, *more), use.terminating)
    known = _scored_uses.get(use.pod_class)
    if known is None:
        known = Use(use.pod_class, (*use.charges, *more))
        _scored_uses.put(use.pod_class, known)
    return known


def charges_on_node(pod: Pod, minor: int, pod_class: PodClass | None = None) -> Charges:
    """Return the amounts that a pod takes from its node, resizes in flight included, by the rules of a minor version.

    A pod whose amounts cannot be read takes its place among the pods and its ports only. Its class, as
    ``classify_unbound`` gives it, need not be made again where it is known.
    """
    if pod_class is None:
        pod_class = classify_unbound(pod)
    if not is_resized(pod):
        return pod_class.charges
    status = pod.status
    statuses = [
        (one.name, one.resources, one.allocated_resources)
        for one in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    ]
    names = [one.name for one in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))]
    pending = [one.reason for one in status.conditions or () if one.type == "PodResizePending"]
    key = exact_key(
        (pod_class.key, names, statuses, status.resources, status.allocated_resources, pending, minor)
    )
    charges = _resized.get(key)
    if charges is None:
        try:
            charges = charges_of(pod_requests_on_node(pod, minor), pod_class.ports)
        except QuantityError:
            charges = pod_class.charges
        _resized.put(key, charges)
    return charges


def _class_of(pod: Pod, node_name: str) -> PodClass:
    key = _key(pod, node_name)
    found = _classes.newest.get(key)
    if found is None:
        found = _classes.get(key)
        if found is None:
            found = PodClass(key, pod, node_name=node_name)
            _classes.put(key, found)
    return found


def _key(pod: Pod, node_name: str) -> bytes:
    spec = pod.spec
    init = spec.init_containers
    return exact_key(
        (
            pod.metadata.namespace,
            pod.metadata.labels,
            [(one.resources, one.ports, one.restart_policy_rules) for one in spec.containers or ()],
            [(one.resources, one.ports, one.restart_policy, one.restart_policy_rules) for one in init]
            if init
            else None,
            spec.resources,
            spec.overhead,
            spec.host_network and spec.host_users is False,
            node_name,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            _volume_key(pod) if spec.volumes else None,
            (pod.metadata.name, pod.metadata.uid, claims_of_pod(pod)) if spec.resource_claims else None,
        )
    )


def _volume_key(pod: Pod) -> object:
    """Return what of a pod's volumes is part of its class; None for most. Claims of ephemeral volumes are the pod's own."""
    claims, disks = claims_of(pod), disks_of(pod)
    return (claims, disks) if claims or disks else None
