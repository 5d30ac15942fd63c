"""What the containers of a pod ask for together, over plain JSON.

Scheduling and scaling have their own columnar forms of this rule; here it serves defaulting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetide.units.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from kubetide.objects.base import Json


def container_requests(spec: Json) -> dict[str, Quantity]:
    """Return the greater of what runs together and what init needs at its peak, per resource.

    Init containers run one by one; one with ``restartPolicy: Always`` (a sidecar) keeps running, so
    it counts with the containers and with each init container after it.

    Raises: QuantityError.
    Source: KEP-753.
    """
    running: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, asked)
            peak = _most(peak, running)
        else:
            peak = _most(peak, _sum(running, asked))
    for container in spec.get("containers") or ():
        running = _sum(running, _requests(container))
    return _most(running, peak)


def pod_requests(spec: Json) -> dict[str, Quantity]:
    """Return what the whole pod asks for: its own requests before its containers', and its overhead.

    Raises: QuantityError.
    Source: KEP-2837, KEP-688.
    """
    asked = {**container_requests(spec), **_requests(spec)}
    overhead = {name: Quantity.parse(value) for name, value in (spec.get("overhead") or {}).items()}
    return _sum(asked, overhead)


def _requests(container: Json) -> dict[str, Quantity]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: Quantity.parse(value) for name, value in requests.items()}


def _sum(a: dict[str, Quantity], b: dict[str, Quantity]) -> dict[str, Quantity]:
    return {**a, **{name: a.get(name, ZERO) + amount for name, amount in b.items()}}


def _most(a: dict[str, Quantity], b: dict[str, Quantity]) -> dict[str, Quantity]:
    return {**a, **{name: max(a.get(name, ZERO), amount) for name, amount in b.items()}}
