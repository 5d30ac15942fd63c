"""What the new pods of a workload ask for, where a VPA sets their requests.

A pod that is moved comes back as a new one, and may ask for more than it did: by a newer recommendation, or by a
start-up boost while it starts. Where only the requests of now are counted, its node goes, the new pod fits nowhere, and a
node is bought for it, again and again. Whoever changes new pods in the same process announces what they will ask for; of
others it is learned from the last one that waited. Cluster Autoscaler does not count this; so it is used only where the
loops share a plan, or with consolidation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from kubetide.nodes.settings import Settings
from kubetide.objects.base import Quantities
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.pod import Container, Pod
from kubetide.objects.vpa import UPDATES_ANNOTATION
from kubetide.plan.board import RequestsByController
from kubetide.units.quantity import Quantity, quantity_error
from kubetide.units.time import Instant, after, hours

_REMEMBERED: Final = hours(24)
_RENEWED: Final = hours(1)
"""Of a pod that still waits, the entry counts from now again after this time."""


class NewPod(msgspec.Struct, frozen=True, omit_defaults=True):
    """The requests of a workload's new pods, by container.

    Attributes:
        at: Since when they are known.
        created: When the pod was created that they were learned from.
        announced: Whether they stand on the board, and were not learned from a pod that waited for a node.
    """

    at: Instant
    requests: Mapping[str, Quantities]
    created: str = ""
    announced: bool = False


def counts_new_pods(settings: Settings) -> bool:
    """Return whether moved pods count with what they ask for when they come back."""
    return settings.consolidation_enabled or "intents" in settings.demand_sources


def with_new_pods(
    known: dict[str, NewPod], announced: RequestsByController, pending: Mapping[Key, Pod], now: Instant
) -> dict[str, NewPod]:
    """Return ``known`` by what is announced now, and of other workloads by the waiting pods whose requests a VPA has set.

    Learned ones are remembered for a day. Keys are uids of controllers.
    """
    known = {uid: one for uid, one in known.items() if uid not in announced and _holds(one, now)} | {
        uid: _announced(known.get(uid), requests, now) for uid, requests in announced.items()
    }
    for _, pod in sorted(pending.items()):
        owner = controller_of(pod.metadata)
        if (
            owner is None
            or owner.uid in announced
            or UPDATES_ANNOTATION not in (pod.metadata.annotations or {})
        ):
            continue
        before, created = known.get(owner.uid), pod.metadata.creation_timestamp or ""
        if before is not None and created < before.created:
            continue
        requests = {one.name: _readable(one.resources.requests) for one in pod.spec.containers or ()}
        # While a pod waits the same entry stays, so that what was decided from it holds.
        same = before is not None and (requests, created) == (before.requests, before.created)
        if before is None or not same or after(before.at, _RENEWED) < now:
            known = {**known, owner.uid: NewPod(now, requests, created)}
    return known


def forgotten_at(known: Mapping[str, NewPod]) -> Instant | None:
    """Return when the first of these is forgotten; None for never."""
    return min((after(one.at, _REMEMBERED) for one in known.values() if not one.announced), default=None)


def _holds(one: NewPod, now: Instant) -> bool:
    return not one.announced and after(one.at, _REMEMBERED) > now


def _announced(before: NewPod | None, requests: Mapping[str, Quantities], now: Instant) -> NewPod:
    if before is not None and before.announced and before.requests == requests:
        return before
    return NewPod(now, requests, announced=True)


def as_new(pod: Pod, new_pods: Mapping[str, NewPod]) -> Pod:
    """Return the pod with what its workload's new pods ask for, where that is more; the pod itself where it is not."""
    owner = controller_of(pod.metadata) if new_pods else None
    new = new_pods.get(owner.uid) if owner is not None else None
    if new is None:
        return pod
    containers = tuple(_raised(one, new.requests.get(one.name, {})) for one in pod.spec.containers or ())
    if containers == (pod.spec.containers or ()):
        return pod
    return replace(pod, spec=replace(pod.spec, containers=containers))


def new_requests_text(pod: Pod, new: Pod) -> str:
    """Return what a pod asks for as a new one in place of what it asks for now; empty where that is the same."""
    said = []
    for one, other in zip(pod.spec.containers or (), new.spec.containers or (), strict=True):
        own, amounts = one.resources.requests or {}, other.resources.requests or {}
        said += [
            f"{name} {amount} in place of {own.get(name, 'none')}"
            for name, amount in sorted(amounts.items())
            if amount != own.get(name)
        ]
    return f"; as a new pod it asks for {', '.join(said)}, by its VPA" if said else ""


def _readable(amounts: Quantities | None) -> Quantities:
    return {name: value for name, value in (amounts or {}).items() if quantity_error(value) is None}


def _raised(container: Container, requests: Quantities) -> Container:
    own = container.resources.requests or {}
    known = _readable(own)
    more = {
        name: amount
        for name, amount in requests.items()
        if Quantity.parse(amount) > Quantity.parse(known.get(name, 0))
    }
    if not more:
        return container
    return replace(container, resources=replace(container.resources, requests={**own, **more}))
