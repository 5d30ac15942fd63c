"""Requests of pods and allocatable amounts of nodes, as kube-scheduler counts them.

Amounts are int64: milli-CPU, bytes, counts, each rounded up once, after exact sums. Where
upstream's int64 wraps, these wrap.

Source: kube-scheduler v1.36 NodeResourcesFit, KEP-753 (sidecars), KEP-1287 (in-place resize),
KEP-2837 (pod-level resources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from kubetide.objects.base import Quantities
from kubetide.objects.node import Node
from kubetide.objects.pod import Container, ContainerStatus, Pod, ResourceRequirements, pod_condition
from kubetide.units.quantity import Quantity, QuantityError

PODS = "pods"

_CORE = ("cpu", "memory", "ephemeral-storage")

SCORED = ("cpu", "memory")
"""The resources that kube-scheduler's default profile scores."""

_UNASKED: Mapping[str, Quantity] = {"cpu": Quantity.parse("100m"), "memory": Quantity.parse("200Mi")}
"""What scoring takes a container to need of a resource that it does not name."""
_Amounts = dict[str, Quantity]
_LONGEST_CACHED = 512
"""Characters of name and amount; longer ones are read each time."""


def is_checked(name: str) -> bool:
    """Return whether the scheduler checks a resource of that name.

    The core three, huge pages, attachable volumes, and names with a domain; others are ignored.
    """
    if name in _CORE or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith("requests.")


def wrap(value: int) -> int:
    """Return the value wrapped to int64 (modulo 2^64, signed)."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def pod_requests(pod: Pod) -> dict[str, int]:
    """Return the requests of a pod to place: its spec alone, by resource that the scheduler checks.

    The larger of the containers (with sidecars) and of each init container with the sidecars started
    before it; pod-level requests take the place of that, then overhead is added. Core resources come
    first, then the others by name.

    Raises: QuantityError, naming the pod, for an amount that cannot be read.
    """
    return _whole_amounts(pod, lambda container: _read(container.resources.requests), pod_level=None)


def pod_requests_on_node(pod: Pod) -> dict[str, int]:
    """Return the amounts that a pod on a node takes: ``pod_requests`` with resizes in flight.

    A container whose status has resources takes the largest of spec, actual and allocated; the
    spec is left out when the resize was found infeasible.

    Raises: QuantityError, naming the pod, for an amount that cannot be read.
    """
    effective, _, pod_level = _effective(pod, {})
    return _whole_amounts(pod, effective, pod_level=pod_level)


def scored_requests(pod: Pod, requests: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the requests that scoring assumes for a pod during placement, and on a node, by resource of ``SCORED``.

    A container that does not name a resource counts 100m of cpu and 200Mi of memory; an explicit 0 stays 0.
    While a pod is placed its pod-level requests play no part. On a node they do, and where there are any,
    the defaults stand in only for what neither the pod nor a container names.

    Args:
        pod: What is placed; resizes in flight count once it is on a node.
        requests: What ``pod_requests`` or ``pod_requests_on_node`` gives for it.

    Source: kube-scheduler v1.36 NodeResourcesFit, score phase.
    """
    asked = tuple(requests.get(name, 0) for name in SCORED)
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    named = all(name in (one.resources.requests or ()) for one in containers for name in SCORED)
    if named and pod.spec.resources is None:
        return asked, asked
    try:
        placed = _scored(pod, _specified, _UNASKED, pod_level={})
        at_pod_level = _is_pod_level(pod)
        defaults = {
            name: amount for name, amount in _UNASKED.items() if not (at_pod_level and name in requests)
        }
        return placed, _scored(pod, *_effective(pod, defaults))
    except QuantityError:
        return asked, asked


def is_resized(pod: Pod) -> bool:
    """Return whether ``pod_requests_on_node`` may differ from the spec: a status has resources other than requested.

    Where nothing is being resized, statuses repeat the spec.
    """
    spec, status = pod.spec, pod.status
    if status.resources is not None and spec.resources is not None:
        return True
    # Plain loops: this is asked of every pod on every node, and most statuses say nothing of resources.
    for statuses in (status.container_statuses, status.init_container_statuses):
        if statuses:
            for one in statuses:
                if one.resources is not None and _tells_others(
                    one, (*(spec.init_containers or ()), *(spec.containers or ()))
                ):
                    return True
    return False


def _specified(container: Container) -> _Amounts:
    return _read(container.resources.requests)


def _effective(
    pod: Pod, defaults: Mapping[str, Quantity]
) -> tuple[Callable[[Container], _Amounts], Mapping[str, Quantity], _Amounts | None]:
    """Return how to read a container of a pod on a node, the defaults, and what counts at pod level."""
    condition = pod_condition(pod, "PodResizePending")
    infeasible = condition is not None and condition.reason == "Infeasible"
    statuses: dict[str, ContainerStatus] = {
        status.name: status
        for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    }

    def effective(container: Container) -> _Amounts:
        status = statuses.get(container.name)
        if status is None:
            return _read(container.resources.requests)
        return _resized(
            container.resources.requests, status.resources, status.allocated_resources, infeasible=infeasible
        )

    spec = pod.spec.resources
    pod_level = None
    if spec is not None:
        pod_level = _resized(
            spec.requests, pod.status.resources, pod.status.allocated_resources, infeasible=infeasible
        )
    return effective, defaults, pod_level


def _is_pod_level(pod: Pod) -> bool:
    """Return whether the pod itself asks for a resource that can be asked for there."""
    asked = pod.spec.resources.requests if pod.spec.resources is not None else None
    return any(_at_pod_level(name) for name in asked or ())


def _at_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def _scored(
    pod: Pod,
    requests_of: Callable[[Container], _Amounts],
    defaults: Mapping[str, Quantity],
    pod_level: _Amounts | None,
) -> tuple[int, ...]:
    def filled(container: Container) -> _Amounts:
        return {**defaults, **requests_of(container)}

    amounts = _whole_amounts(pod, filled, pod_level=pod_level)
    return tuple(amounts.get(name, 0) for name in SCORED)


def _tells_others(status: ContainerStatus, containers: Sequence[Container]) -> bool:
    if status.resources is None:
        return False
    actual, allocated = status.resources.requests, status.allocated_resources
    for container in containers:
        if container.name == status.name:
            asked = container.resources.requests
            if actual != asked or (allocated is not None and allocated != asked):
                return True
    return False


def node_allocatable(node: Node) -> dict[str, int]:
    """Return the node's allocatable amounts by resource that the scheduler checks, with ``pods``.

    An amount that cannot be read counts as none, so that the node takes nothing that needs it.
    """
    offered: dict[str, int] = {}
    for name, text in (node.status.allocatable or {}).items():
        if name == PODS or is_checked(name):
            # What is too long to be an amount may be megabytes: it is not cached.
            is_cached = len(name) + len(str(text)) <= _LONGEST_CACHED
            offered[name] = _offered(name, text) if is_cached else _offered.__wrapped__(name, text)
    return offered


@lru_cache(maxsize=1 << 14)
def _offered(name: str, text: str | float) -> int:
    try:
        return _amount(name, Quantity.parse(text))
    except QuantityError:
        return 0


def _amount(name: str, quantity: Quantity) -> int:
    return quantity.milli_value() if name == "cpu" else quantity.int64_value()


def _whole_amounts(
    pod: Pod, requests_of: Callable[[Container], _Amounts], *, pod_level: _Amounts | None
) -> dict[str, int]:
    try:
        exact = _aggregate(pod.spec.containers or (), pod.spec.init_containers or (), requests_of)
        if pod_level is None and pod.spec.resources is not None:
            pod_level = _read(pod.spec.resources.requests)
        for name, quantity in (pod_level or {}).items():
            if _at_pod_level(name):
                exact[name] = quantity
        _add(exact, _read(pod.spec.overhead))
    except QuantityError as error:
        where = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
        raise QuantityError(f"{where}: a resource request cannot be read: {error}") from error
    names = [name for name in _CORE if name in exact]
    names += sorted(name for name in exact if name not in _CORE and is_checked(name))
    return {name: _amount(name, exact[name]) for name in names}


def _aggregate(
    containers: Iterable[Container],
    init_containers: Iterable[Container],
    requests_of: Callable[[Container], _Amounts],
) -> _Amounts:
    running: _Amounts = {}
    for container in containers:
        _add(running, requests_of(container))
    sidecars: _Amounts = {}
    starting: _Amounts = {}
    for container in init_containers:
        requests = requests_of(container)
        if container.restart_policy == "Always":
            _add(running, requests)
            _add(sidecars, requests)
            _raise_to(starting, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(starting, requests)
    _raise_to(running, starting)
    return running


def _resized(
    spec: Quantities | None,
    actual: ResourceRequirements | None,
    allocated: Quantities | None,
    *,
    infeasible: bool,
) -> _Amounts:
    if actual is None:
        return _read(spec)
    effective = _read(actual.requests)
    _raise_to(effective, _read(allocated))
    if not infeasible:
        _raise_to(effective, _read(spec))
    return effective


def _read(quantities: Quantities | None) -> _Amounts:
    """Return a fresh dict, which the caller may change."""
    return {name: Quantity.parse(text) for name, text in quantities.items()} if quantities else {}


def _add(total: _Amounts, more: Mapping[str, Quantity]) -> None:
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise_to(total: _Amounts, other: Mapping[str, Quantity]) -> None:
    for name, quantity in other.items():
        if name not in total or total[name] < quantity:
            total[name] = quantity
