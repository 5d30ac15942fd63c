"""Amounts of resources as text, rejections with their amounts, and pods with lower requests."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kubetide.objects.base import Quantities
from kubetide.objects.pod import Container, Pod, ResourceRequirements
from kubetide.scheduling import Refusal, Shortfall
from kubetide.units.quantity import bytes_to_text, milli, milli_to_text, whole

_MIB = 1 << 20


def amount_text(resource: str, amount: int) -> str:
    """Return an amount as people write it: ``250m``, ``3Gi``; to a tenth of a MiB if it is no round number."""
    if resource == "cpu":
        return milli_to_text(amount)
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return _bytes_text(amount)
    return str(amount)


def floor_amount(resource: str, amount: int) -> int:
    """Return the largest round amount that is not larger: tenths of GiB, whole MiB, 10 milli-CPU."""
    if resource == "cpu":
        return amount // 10 * 10 if amount >= 100 else amount
    if resource in {"memory", "ephemeral-storage"}:
        if amount >= 1 << 30:
            tenths = amount * 10 // (1 << 30)
            return tenths * (1 << 30) // 10
        return amount // _MIB * _MIB if amount >= _MIB else amount
    return amount


def lower_requests(pod: Pod, targets: Mapping[str, int]) -> Pod:
    """Return the pod with its containers' summed requests at most the targets, the largest cut first."""
    containers = list(pod.spec.containers or ())
    for resource, target in targets.items():
        total = sum(_request(one, resource) for one in containers)
        excess = total - target
        for at in sorted(range(len(containers)), key=lambda at: -_request(containers[at], resource)):
            cut = min(excess, _request(containers[at], resource))
            if cut <= 0:
                break
            containers[at] = _with_request(containers[at], resource, _request(containers[at], resource) - cut)
            excess -= cut
    return replace(pod, spec=replace(pod.spec, containers=tuple(containers)))


def refusal_text(refusal: Refusal) -> str:
    """Return the text of a rejection with its amounts."""
    parts = [_shortfall_text(short) for short in refusal.numbers]
    if refusal.detail and refusal.detail not in refusal.reasons:
        parts.append(refusal.detail)
    words = ", ".join(refusal.reasons) or refusal.plugin
    return f"{words} ({'; '.join(parts)})" if parts else words


def _shortfall_text(short: Shortfall) -> str:
    requested = amount_text(short.resource, short.requested)
    allocatable = amount_text(short.resource, short.allocatable)
    if short.free < 0:
        there = amount_text(short.resource, short.allocatable - short.free)
        return f"{short.resource}: {requested} requested, none free of {allocatable} allocatable, as its pods ask for {there}"
    return f"{short.resource}: {requested} requested, {amount_text(short.resource, short.free)} free of {allocatable} allocatable"


def _bytes_text(amount: int) -> str:
    if amount % _MIB and amount >= 1 << 30:
        tenths = -(-amount * 10 // (1 << 30))
        if tenths * (1 << 30) // 10 == amount:
            return f"{tenths // 10}.{tenths % 10}Gi"
    if amount % 1024 and amount > _MIB:
        return f"{amount / _MIB:.1f}Mi"
    return bytes_to_text(amount)


def _request(container: Container, resource: str) -> int:
    text = (container.resources.requests or {}).get(resource)
    if text is None:
        return 0
    return milli(text) if resource == "cpu" else whole(text)


def _with_request(container: Container, resource: str, amount: int) -> Container:
    requests: Quantities = {**(container.resources.requests or {})}
    requests[resource] = f"{amount}m" if resource == "cpu" else str(amount)
    return replace(
        container, resources=ResourceRequirements(requests=requests, limits=container.resources.limits)
    )
