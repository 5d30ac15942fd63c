"""Devices that a pod requests: claims by name, and extended resources that a device class may provide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kubetide.objects.pod import Container, Pod
from kubetide.units.names import valid_label_key
from kubetide.units.quantity import Quantity

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""An extended resource of this prefix means the device class named behind it."""


class ResourceClaimUse(msgspec.Struct, frozen=True):
    """A ResourceClaim that a pod uses.

    Attributes:
        owner: (UID, name) of the pod when the claim is made for it out of a template, else empty.
        error: Not empty when it is not known which claim is meant: upstream's words.
    """

    namespace: str
    name: str
    owner: tuple[str, ...] = ()
    error: str = ""


class ContainerUse(msgspec.Struct, frozen=True):
    """The extended resources that one container requests.

    Attributes:
        lasting: Whether it runs as long as the pod: all but plain init containers.
        amounts: (resource, count, its place among the sorted names of all the container asks for).
    """

    lasting: bool
    amounts: tuple[tuple[str, int, int], ...] = ()


class DeviceUse(msgspec.Struct, frozen=True):
    """All device requests of a pod.

    Attributes:
        pod: (namespace, name, UID) where any claim is asked for by name, else empty: pods that only
            ask for extended resources are alike.
        containers: Init containers first, as upstream numbers them; none without extended resources.
        extended: What the pod as a whole asks for, by extended resource.
    """

    pod: tuple[str, ...] = ()
    claims: tuple[ResourceClaimUse, ...] = ()
    containers: tuple[ContainerUse, ...] = ()
    extended: tuple[tuple[str, int], ...] = ()


def is_extended(name: str) -> bool:
    """Return whether a device class may provide a resource of that name. Source: kube-scheduler v1.36."""
    if name.startswith(CLASS_PREFIX):
        return True
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return valid_label_key(f"requests.{name}")


def claims_of_pod(pod: Pod) -> tuple[ResourceClaimUse, ...]:
    """Return the claims in the pod's order, without those whose template status says that none is needed."""
    meta = pod.metadata
    found: list[ResourceClaimUse] = []
    made = {one.name: one for one in reversed(pod.status.resource_claim_statuses or ())}
    for one in pod.spec.resource_claims or ():
        if one.resource_claim_name is not None:
            found.append(ResourceClaimUse(meta.namespace, one.resource_claim_name))
        elif one.resource_claim_template_name is None:
            said = "none of the supported fields are set"
            error = f'pod "{meta.namespace}/{meta.name}", spec.resourceClaim "{one.name}": {said}'
            found.append(ResourceClaimUse(meta.namespace, "", error=error))
        elif one.name not in made:
            error = f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet'
            found.append(ResourceClaimUse(meta.namespace, "", error=error))
        else:
            name = made[one.name].resource_claim_name
            if name is not None:
                found.append(ResourceClaimUse(meta.namespace, name, owner=(meta.uid, meta.name)))
    return tuple(found)


def device_use(pod: Pod, requests: Mapping[str, int]) -> DeviceUse | None:
    """Return the device requests of a pod; ``requests`` are all its requests; None for most pods."""
    claims = claims_of_pod(pod) if pod.spec.resource_claims else ()
    extended = tuple((name, amount) for name, amount in requests.items() if amount and is_extended(name))
    if not claims and not extended:
        return None
    meta = pod.metadata
    return DeviceUse(
        pod=(meta.namespace, meta.name, meta.uid) if claims else (),
        claims=claims,
        containers=tuple(_containers(pod)) if extended else (),
        extended=extended,
    )


def _containers(pod: Pod) -> Iterator[ContainerUse]:
    for container in pod.spec.init_containers or ():
        yield ContainerUse(container.restart_policy == "Always", _amounts(container))
    for container in pod.spec.containers or ():
        yield ContainerUse(lasting=True, amounts=_amounts(container))


def _amounts(container: Container) -> tuple[tuple[str, int, int], ...]:
    """Whole counts of extended resources; a fraction asks for no device, as upstream counts."""
    found: list[tuple[str, int, int]] = []
    asked = container.resources.requests or {}
    for place, name in enumerate(sorted(asked)):
        if not is_extended(name):
            continue
        nano = Quantity.parse(asked[name]).exact_nano()
        if nano and nano % 1_000_000_000 == 0:
            found.append((name, nano // 1_000_000_000, place))
    return tuple(found)
