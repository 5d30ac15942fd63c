"""The claims of a pod: which exist, which are allocated, which need devices, and what makes the pod unschedulable.

Source: kube-scheduler v1.36 DynamicResources as Cluster Autoscaler runs it; the messages about claims
and classes that are missing are those of the autoscaler's own listers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubetide.objects.meta import ObjectMeta, controller_of
from kubetide.objects.node import Node
from kubetide.objects.resource import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubetide.scheduling.devices.facts import ClaimKey
from kubetide.scheduling.devices.ledger import Ledger, PoolSet, SearchResult
from kubetide.scheduling.devices.requests import EXACT_COUNT
from kubetide.scheduling.devices.search import allocate
from kubetide.scheduling.devices.use import Given
from kubetide.scheduling.pods.device_use import DeviceUse, ResourceClaimUse
from kubetide.scheduling.pods.exact_key import exact_key

EXTENDED = "<extended-resources>"
"""Name of the claim for what a pod asks for as extended resources, before the scheduler has made one."""


class Problem(NamedTuple):
    """Why a pod cannot be placed anywhere; ``fatal`` where upstream returns Error."""

    message: str
    fatal: bool = False


def find_claims(use: DeviceUse, ledger: Ledger) -> list[tuple[ClaimKey, ResourceClaim]] | Problem:
    """Return the claims of a pod, or the first problem with them."""
    found: list[tuple[ClaimKey, ResourceClaim]] = []
    for one in use.claims:
        if one.error:
            return Problem(one.error)
        key = (one.namespace, one.name)
        claim = ledger.claims.get(key)
        if claim is None:
            return Problem(f"claim {one.namespace}/{one.name} not found")
        if claim.metadata.deletion_timestamp is not None:
            return Problem(f'resourceclaim "{one.name}" is being deleted')
        if one.owner and not _is_made_for(claim, one):
            pod = f"{one.namespace}/{one.owner[1]}"
            said = (
                f"ResourceClaim {one.namespace}/{one.name} was not created for Pod {pod} (Pod is not owner)"
            )
            return Problem(said)
        found.append((key, claim))
    for key, claim in found:
        problem = _problem(key, claim, ledger)
        if problem is not None:
            return problem
    return found


def asks_for_devices(use: DeviceUse, ledger: Ledger) -> bool:
    """Return whether the plugin has anything to evaluate for the pod."""
    return bool(use.claims) or any(ledger.class_of(name) is not None for name, _ in use.extended)


def _is_made_for(claim: ResourceClaim, use: ResourceClaimUse) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == use.owner[0]


def _problem(key: ClaimKey, claim: ResourceClaim, ledger: Ledger) -> Problem | None:
    held = ledger.held(key)
    if held is not None:
        if held.reach is not None and held.reach.problem:
            return Problem(held.reach.problem, fatal=True)
        return None
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            if not request.exactly.device_class_name:
                return Problem(f"request {request.name}: unsupported request type", fatal=True)
            continue
        if not request.first_available:
            name = "/".join(key)
            return Problem(f"resource claim {name}, request {request.name}: unknown request type")
        for one in request.first_available:
            if not one.device_class_name:
                said = f"request {request.name}/{one.name}: unsupported request type"
                return Problem(said, fatal=True)
    return None


def asked_by(claims: Sequence[ResourceClaim]) -> bytes:
    """Return a key that is equal for claims that ask for the same devices in the same order."""
    return exact_key(tuple(one.spec for one in claims))


def allocate_on(
    node: Node,
    pools: PoolSet,
    claims: Sequence[ResourceClaim],
    ledger: Ledger,
    asked: bytes | None = None,
) -> tuple[tuple[Given, ...], ...] | None:
    """Return devices on a node for claims that have none, and note them in the ledger until the pools change.

    ``asked`` is what ``asked_by`` returns for the claims, where that is known. Raises what ``search.allocate`` raises.
    """
    asked = asked_by(claims) if asked is None else asked
    state = ledger.state_of(pools)
    found = ledger.searched(pools, asked, state)
    if found is None:
        given = allocate(node, pools.pools, claims, ledger.classes, ledger.in_use)
        found = SearchResult(None if given is None else tuple(given))
        ledger.note_search(pools, asked, state, found)
    return found.given


def extended_claim(use: DeviceUse, names: Sequence[str], ledger: Ledger, namespace: str) -> ResourceClaim:
    """Return the claim for extended resources on a node that provides them by devices.

    Plain init containers use again what the containers that start after them will have; of what they
    ask for beyond that the largest counts.
    """
    requests: list[DeviceRequest] = []
    for name in sorted(names):
        found = ledger.class_of(name)
        if found is not None:
            requests += _requests(use, name, found.metadata.name)
    requests.sort(key=lambda one: one.name)
    return ResourceClaim(
        metadata=ObjectMeta(name=EXTENDED, namespace=namespace),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests))),
    )


def _requests(use: DeviceUse, resource: str, class_name: str) -> Iterator[DeviceRequest]:
    asked = [
        next(((count, place) for name, count, place in one.amounts if name == resource), (0, 0))
        for one in use.containers
    ]
    lasting = [count if one.lasting else 0 for one, (count, _) in zip(use.containers, asked, strict=True)]
    most, of = 0, -1
    for at, one in enumerate(use.containers):
        more = asked[at][0] - sum(lasting[at:])
        if not one.lasting and more > most:
            most, of = more, at
    requested = {at: count for at, count in enumerate(lasting) if count}
    if of >= 0:
        requested[of] = most
    for at, count in requested.items():
        yield DeviceRequest(
            name=f"container-{at}-request-{asked[at][1]}",
            exactly=ExactDeviceRequest(
                device_class_name=class_name, allocation_mode=EXACT_COUNT, count=count
            ),
        )
