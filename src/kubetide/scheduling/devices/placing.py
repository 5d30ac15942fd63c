"""Device allocations of pods that are placed and removed."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.objects.node import Node
from kubetide.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubetide.objects.resource import ResourceClaim
from kubetide.scheduling.devices.claims import EXTENDED, Problem, allocate_on, extended_claim, find_claims
from kubetide.scheduling.devices.facts import ClaimKey
from kubetide.scheduling.devices.ledger import Held, Ledger, Undo, taking_of
from kubetide.scheduling.devices.offers import NodeReach
from kubetide.scheduling.devices.problems import ClaimError, NodeError
from kubetide.scheduling.devices.use import Given
from kubetide.scheduling.pods.device_use import DeviceUse
from kubetide.scheduling.pods.resources import node_allocatable

PodKey = tuple[str, str]


def put_on(ledger: Ledger, use: DeviceUse, pod: PodKey, node: Node | None, *, bound: bool) -> list[Undo]:
    """Note a pod's claims, allocate devices to those without; return how to undo that.

    Args:
        ledger: The books.
        use: What the pod asks for.
        pod: Its namespace and name.
        node: Where it is put; None when that node is not known.
        bound: Whether the cluster has put it there: then the cluster has also given it what it has.

    Returns: how to take it back, to be called in reverse order.
    """
    done: list[Undo] = []
    found = find_claims(use, ledger)
    claims = [] if isinstance(found, Problem) else list(found)
    if use.extended and node is not None:
        claims += extended_claims(ledger, use, pod, node)
    for key, _ in claims:
        done.append(ledger.use(key, pod))
    wanting = [(key, claim) for key, claim in claims if ledger.held(key) is None]
    if bound or node is None or not wanting:
        return done
    try:
        given = allocate_on(node, ledger.pools_of(node), [claim for _, claim in wanting], ledger)
    except (ClaimError, NodeError):
        given = None
    for (key, _), devices in zip(wanting, given or (), strict=False):
        takings = tuple(one for one in map(taking_of, devices) if one is not None)
        ledger.hold(key, Held(reach_of(devices, node), takings))
        done.append(_releasing(ledger, key))
    return done


def take_off(ledger: Ledger, use: DeviceUse, pod: PodKey) -> list[Undo]:
    """Note that a pod no longer uses its claims; return how to undo that."""
    keys = [(one.namespace, one.name) for one in use.claims if one.name]
    if use.extended:
        keys.append(_extended_key(ledger, pod))
    return [ledger.leave(key, pod) for key in keys]


def _releasing(ledger: Ledger, key: ClaimKey) -> Undo:
    return lambda: ledger.release(key)


def _extended_key(ledger: Ledger, pod: PodKey) -> ClaimKey:
    return ledger.claim_made_for(pod) or (pod[0], f"{EXTENDED}/{pod[1]}")


def extended_claims(
    ledger: Ledger, use: DeviceUse, pod: PodKey, node: Node
) -> list[tuple[ClaimKey, ResourceClaim]]:
    """Return the claim for the extended resources of a pod that the node provides by devices, if any."""
    offered = node_allocatable(node)
    names = [name for name, _ in use.extended if ledger.class_of(name) and not offered.get(name)]
    if not names:
        return []
    return [(_extended_key(ledger, pod), extended_claim(use, names, ledger, pod[0]))]


def reach_of(devices: Sequence[Given], node: Node) -> NodeReach | None:
    """Return the nodes where a claim with these devices can be used, as upstream writes its node selector."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for one in devices:
        offer = one.offer
        reach = offer.reach if offer.reach is not None else offer.piece.reach
        if reach.name or offer.device.binds_to_node:
            return NodeReach(node.metadata.name)
        if reach.selector is not None:
            for term in (reach.selector.node_selector_terms or ())[:1]:
                fields += [new for new in term.match_fields or () if new not in fields]
                labels += [new for new in term.match_expressions or () if new not in labels]
    if not fields and not labels:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields))
    return NodeReach(selector=NodeSelector(node_selector_terms=(term,)))
