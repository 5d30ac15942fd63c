"""Which volume a claim would get on a node: the rules of VolumeBinding, one claim at a time.

Source: kube-scheduler v1.36 volume binder; component-helpers volume matching.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kubetide.objects.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubetide.scheduling.pods.node_selection import Term, compile_label_terms
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.snapshot.volumes import Volumes, is_bound
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.selectors import NOTHING, Selector, SelectorError

NO_PROVISIONER = "kubernetes.io/no-provisioner"
_FILESYSTEM = "Filesystem"


class PodClaims(msgspec.Struct, frozen=True):
    """The claims of a pod: bound, waiting for the pod's node, or to be bound without it."""

    bound: tuple[PersistentVolumeClaim, ...]
    waiting: tuple[PersistentVolumeClaim, ...]
    immediate: tuple[PersistentVolumeClaim, ...]


def sort_claims(pod: PodClass, volumes: Volumes) -> PodClaims:
    """Return the existing claims by binding mode. Raises: ModeUnknown with upstream's message."""
    bound, waiting, immediate = [], [], []
    for use in pod.claims:
        claim = volumes.claim(use)
        if claim is None:
            continue
        if is_bound(claim):
            bound.append(claim)
        elif volumes.waits_for_consumer(claim) and not claim.spec.volume_name:
            waiting.append(claim)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(waiting), tuple(immediate))


def reaches(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels reaches the volume; terms about fields are ignored."""
    terms = _terms(volume)
    return terms is None or any(term.holds(labels, "") for term in terms)


class Matches(msgspec.Struct, frozen=True):
    """Which claim gets which free volume, and which get none."""

    found: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    left: tuple[PersistentVolumeClaim, ...]


def match_static(
    claims: Sequence[PersistentVolumeClaim], volumes: Volumes, labels: Mapping[str, str] | None
) -> Matches:
    """Return free volumes for claims, smallest claim first, each with the smallest sufficient volume.

    Args:
        claims: What is to be bound.
        volumes: All there are.
        labels: Of the node that must reach them; None where any node will do.
    """
    taken: dict[str, None] = {}
    found, left = [], []
    for claim in sorted(claims, key=claim_size):
        volume = _volume_for(claim, volumes, taken, labels)
        if volume is None:
            left.append(claim)
        else:
            taken[volume.metadata.name] = None
            found.append((claim, volume))
    return Matches(tuple(found), tuple(left))


def _volume_for(
    claim: PersistentVolumeClaim,
    volumes: Volumes,
    taken: Mapping[str, None],
    labels: Mapping[str, str] | None,
) -> PersistentVolume | None:
    """Return the volume that is reserved for a claim, else the smallest free one that fits; None without one."""
    best: PersistentVolume | None = None
    for volume in volumes.persistent_volumes.values():
        if volume.metadata.name in taken or not _is_right(volume, claim, volumes):
            continue
        reached = labels is None or reaches(volume, labels)
        if is_claimed_by(volume, claim):
            # No other volume takes the place of a reserved one that the node does not reach.
            return volume if reached else None
        if not reached or not _is_free_for(volume, claim):
            continue
        if best is None or volume_size(volume) < volume_size(best):
            best = volume
    return best


def provisioning_problem(
    claim: PersistentVolumeClaim, volumes: Volumes, labels: Mapping[str, str]
) -> str | None:
    """Return why no volume can be provisioned for a claim on a node with these labels, or None.

    Empty when nobody makes volumes there, else what is short.
    """
    found = volumes.storage_classes.get(volumes.class_of(claim))
    if found is None or found.provisioner in {"", NO_PROVISIONER} or not _allows(found, labels):
        return ""
    driver = volumes.csi_drivers.get(found.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    if _capacity_for(found.metadata.name, claim, volumes, labels) is not None:
        return None
    return f"storage of class {found.metadata.name}"


def capacity_for(claim: PersistentVolumeClaim, volumes: Volumes, labels: Mapping[str, str]) -> int | None:
    """Return the free bytes where a claim's volume would be provisioned, or None if they are not reported."""
    found = volumes.storage_classes.get(volumes.class_of(claim))
    driver = None if found is None else volumes.csi_drivers.get(found.provisioner)
    if found is None or driver is None or not driver.spec.storage_capacity:
        return None
    capacity = _capacity_for(found.metadata.name, claim, volumes, labels)
    return None if capacity is None else _read(capacity.capacity or 0)


def _capacity_for(
    class_name: str, claim: PersistentVolumeClaim, volumes: Volumes, labels: Mapping[str, str]
) -> CSIStorageCapacity | None:
    """Return the first report of a class that reaches a node with these labels and is large enough."""
    for capacity in volumes.capacities:
        if capacity.storage_class_name != class_name or capacity.node_topology is None:
            continue
        limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
        if limit is None or _read(limit) < claim_size(claim):
            continue
        if _selector(capacity.node_topology).matches(labels):
            return capacity
    return None


def label_keys(claims: PodClaims, volumes: Volumes) -> tuple[str, ...]:
    """Return the node labels that the verdict on these claims may depend on."""
    keys: dict[str, None] = {}
    classes = dict.fromkeys(volumes.class_of(claim) for claim in claims.waiting)
    asked = [volumes.persistent_volumes.get(claim.spec.volume_name) for claim in claims.bound]
    asked += [one for one in volumes.persistent_volumes.values() if one.spec.storage_class_name in classes]
    for volume in asked:
        for term in (_terms(volume) or ()) if volume is not None else ():
            keys.update(dict.fromkeys(one.key for one in term.labels))
    for name in classes:
        found = volumes.storage_classes.get(name)
        for topology in (found.allowed_topologies or ()) if found is not None else ():
            keys.update(dict.fromkeys(one.key for one in topology.match_label_expressions or ()))
    for capacity in volumes.capacities:
        if capacity.storage_class_name in classes and capacity.node_topology is not None:
            selector = _selector(capacity.node_topology)
            keys.update(dict.fromkeys(one.key for one in selector.requirements))
    return tuple(keys)


def _is_right(volume: PersistentVolume, claim: PersistentVolumeClaim, volumes: Volumes) -> bool:
    """Return whether a volume could serve a claim for all that both specs say, reserved for nobody else."""
    spec, request = volume.spec, claim.spec
    if spec.claim_ref is not None and not is_claimed_by(volume, claim):
        return False
    if (spec.volume_mode or _FILESYSTEM) != (request.volume_mode or _FILESYSTEM):
        return False
    if (spec.volume_attributes_class_name or "") != (request.volume_attributes_class_name or ""):
        return False
    if volume.metadata.deletion_timestamp is not None or spec.storage_class_name != volumes.class_of(claim):
        return False
    return volume_size(volume) >= claim_size(claim)


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume that is reserved for nobody may be taken for a claim."""
    request = claim.spec
    if volume.status.phase != "Available" or not _contains(volume.spec.access_modes, request.access_modes):
        return False
    return request.selector is None or _selector(request.selector).matches(volume.metadata.labels)


def is_claimed_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume is reserved for the claim, or bound to it already."""
    ref, meta = volume.spec.claim_ref, claim.metadata
    if ref is None or (ref.namespace, ref.name) != (meta.namespace, meta.name):
        return False
    return not ref.uid or ref.uid == meta.uid


def _contains(offered: Iterable[str] | None, requested: Iterable[str] | None) -> bool:
    return set(requested or ()) <= set(offered or ())


def _allows(found: StorageClass, labels: Mapping[str, str]) -> bool:
    """Return whether the class makes volumes for nodes with these labels: any term, all of its expressions."""
    if not found.allowed_topologies:
        return True
    return any(
        topology.match_label_expressions
        and all(labels.get(one.key) in (one.values or ()) for one in topology.match_label_expressions)
        for topology in found.allowed_topologies
    )


def _terms(volume: PersistentVolume) -> tuple[Term, ...] | None:
    affinity = volume.spec.node_affinity
    return None if affinity is None else compile_label_terms(affinity.required)


def _selector(given: object) -> Selector:
    try:
        return Selector.from_object(given)  # type: ignore[arg-type]  # a LabelSelector of any type
    except SelectorError:
        return NOTHING  # upstream logs it and goes on to the next capacity or volume


def claim_size(claim: PersistentVolumeClaim) -> int:
    """Return the bytes that a claim requests."""
    return _read((claim.spec.resources.requests or {}).get("storage", 0))


def volume_size(volume: PersistentVolume) -> int:
    """Return the size of a volume in bytes."""
    return _read((volume.spec.capacity or {}).get("storage", 0))


def _read(quantity: str | float) -> int:
    try:
        return Quantity.parse(quantity).value()
    except QuantityError:
        return 0
