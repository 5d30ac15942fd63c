"""Allocations that the scheduler writes into claims: the chosen devices, and the nodes where they can be used.

Source: kube-scheduler v1.36 DynamicResources (Reserve, PreBind), dynamic-resource-allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kubetide.objects.node import Node
from kubetide.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubetide.objects.resource import AllocationResult, DeviceResult, DeviceResults, ResourceClaim
from kubetide.scheduling.devices.claims import Problem, allocate_on, find_claims
from kubetide.scheduling.devices.facts import ClaimKey
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.devices.offers import NodeReach
from kubetide.scheduling.devices.placing import PodKey, extended_claims, reach_of
from kubetide.scheduling.devices.problems import ClaimError, NodeError
from kubetide.scheduling.devices.use import Given
from kubetide.scheduling.pods.device_use import DeviceUse
from kubetide.units.quantity import Quantity


class PlannedClaim(NamedTuple):
    """A claim of a pod that is about to be placed.

    Attributes:
        key: Its namespace and name; of a claim that is still to be made the name is no name.
        claim: As it is, or as it is to be made.
        allocation: What it is to be given; None where it has devices.
        is_extended: Whether it stands for extended resources of the pod.
    """

    key: ClaimKey
    claim: ResourceClaim
    allocation: AllocationResult | None
    is_extended: bool


def plan_claims(
    ledger: Ledger, use: DeviceUse, pod: PodKey, node: Node, share_id: Callable[[str], str]
) -> list[PlannedClaim] | None:
    """Return devices for all claims of a pod that have none, as the filter chose them; None if they are gone.

    Args:
        ledger: Who has which device; not changed.
        use: What the pod asks for.
        pod: Its namespace and name.
        node: Where it is to be put.
        share_id: Gives the identity of a share of a device, by what it is for.
    """
    found = find_claims(use, ledger)
    if isinstance(found, Problem):
        return None
    extended = extended_claims(ledger, use, pod, node) if use.extended else []
    claims = [*found, *extended]
    wanting = [(key, claim) for key, claim in claims if ledger.held(key) is None]
    try:
        given = allocate_on(node, ledger.pools_of(node), [claim for _, claim in wanting], ledger)
    except (ClaimError, NodeError):
        return None
    if given is None:
        return None
    made = {
        key: _result(claim, devices, node, share_id)
        for (key, claim), devices in zip(wanting, given, strict=True)
    }
    names = {key for key, _ in extended}
    return [PlannedClaim(key, claim, made.get(key), key in names) for key, claim in claims]


def _result(
    claim: ResourceClaim, devices: Sequence[Given], node: Node, share_id: Callable[[str], str]
) -> AllocationResult:
    results = tuple(_device(one, share_id(f"{claim.metadata.name}/{at}")) for at, one in enumerate(devices))
    reach = reach_of(devices, node)
    return AllocationResult(
        devices=DeviceResults(results=results),
        node_selector=None if reach is None else _selector(reach),
    )


def _device(given: Given, share_id: str) -> DeviceResult:
    driver, pool, device = given.offer.id
    shared = given.consumed is not None
    return DeviceResult(
        request=given.request,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if given.admin else None,
        binding_conditions=given.offer.device.binding_conditions,
        binding_failure_conditions=given.offer.device.binding_failure_conditions,
        share_id=share_id if shared else None,
        consumed_capacity=_amounts(given.consumed) if given.consumed else None,
    )


def _amounts(consumed: Mapping[str, int]) -> dict[str, str | int | float]:
    return {name: str(Quantity.parse(f"{amount}n")) for name, amount in consumed.items()}


def _selector(reach: NodeReach) -> NodeSelector | None:
    if not reach.name:
        return reach.selector
    here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(reach.name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
