"""What a node lacks for claims that it cannot serve, request by request: for people, never for a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.objects.node import Node
from kubetide.objects.resource import DeviceClass, ResourceClaim
from kubetide.scheduling.devices.offers import Offer, Pool
from kubetide.scheduling.devices.problems import ClaimError
from kubetide.scheduling.devices.requests import Want, read_requests
from kubetide.scheduling.devices.use import InUse


def shortage_text(
    node: Node,
    pools: Sequence[Pool],
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    in_use: InUse,
) -> str:
    """Return, per request that is short by itself, how many devices it needs, exist and are free.

    Args:
        node: The node that was searched in vain.
        pools: Those that it reaches.
        claims: Those without devices.
        classes: All device classes, by name.
        in_use: What is taken already.

    Returns: one sentence; empty where a claim cannot be read.
    """
    found: list[str] = []
    parts = [pool for pool in pools if pool.incomplete]
    offers = [
        offer
        for pool in pools
        if not pool.incomplete and not pool.invalid
        for piece in pool.slices
        for offer in piece
        if offer.reach is None or offer.reach.matches(node)
    ]
    try:
        for claim in claims:
            for alternatives in read_requests(claim, classes, lambda _: None):
                short = [_short(want, offers, in_use) for want in alternatives]
                if all(short):
                    found += short
    except ClaimError:
        return ""
    if parts:
        found.append(f"slices of pool {', '.join('/'.join(pool.id) for pool in parts)} are missing")
    return "; ".join(found) or "each request can be met by itself, all of them together cannot"


def _short(want: Want, offers: Sequence[Offer], in_use: InUse) -> str:
    """Say what one request lacks; empty where it lacks nothing, or only capacity of shared devices."""
    matching = [offer for offer in offers if want.selects(offer)]
    usable = [
        offer
        for offer in matching
        if want.tolerates(offer) and (want.admin or offer.id not in in_use.devices)
    ]
    least = max(want.count, 1)
    if len(usable) >= least:
        return ""
    requested = "all devices" if want.every else f"{want.count} {'device' if want.count == 1 else 'devices'}"
    there = f"{len(matching)} {'matches' if len(matching) == 1 else 'match'}"
    free = f", {len(usable)} of them free" if matching else ""
    return f"claim {want.claim_name}, request {want.name}: wants {requested}, {there}{free}"
