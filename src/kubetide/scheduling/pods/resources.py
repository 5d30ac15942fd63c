"""Requests of pods and allocatable amounts of nodes, as kube-scheduler counts them.

Amounts are int64: milli-CPU, bytes, counts, each rounded up once, after exact sums. Where
upstream's int64 wraps, these wrap.

Source: kube-scheduler v1.36 and v1.37 NodeResourcesFit, KEP-753 (sidecars), KEP-1287 (in-place resize),
KEP-2837 (pod-level resources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

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
_NONE = Quantity.parse("0")
_Amounts = dict[str, Quantity]
_ReadContainer = Callable[[Container], _Amounts]
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
    return _whole_amounts(pod, (_specified,), pod_level=None)


def pod_requests_on_node(pod: Pod, minor: int) -> dict[str, int]:
    """Return the amounts that a pod on a node takes: ``pod_requests`` with resizes in flight.

    With v1.36 a container or sidecar whose status has resources takes the largest of spec, actual and allocated.
    With v1.37 the pod takes the largest of three sums: of the spec, of what is allocated, of what is actual. The
    spec is left out when the resize was found infeasible.

    Raises: QuantityError, naming the pod, for an amount that cannot be read.
    """
    taken = _taken(pod, minor)
    return _whole_amounts(pod, taken.readers, sums=taken.sums, pod_level=taken.pod_level)


def scored_requests(pod: Pod, requests: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the requests that scoring assumes for a pod during placement, and on a node, by resource of ``SCORED``.

    A container that does not name a resource counts 100m of cpu and 200Mi of memory; an explicit 0 stays 0.
    While a pod is placed its pod-level requests play no part. On a node they do, and where there are any,
    the defaults stand in only for what neither the pod nor a container names.

    Args:
        pod: What is placed; its spec alone counts.
        requests: What ``pod_requests`` gives for it.

    Source: kube-scheduler v1.36 NodeResourcesFit, score phase.
    """
    asked = tuple(requests.get(name, 0) for name in SCORED)
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    named = all(name in (one.resources.requests or ()) for one in containers for name in SCORED)
    if named and pod.spec.resources is None:
        return asked, asked
    try:
        placed = _scored(pod, _Taken((_specified,), pod_level={}), _UNASKED)
        return placed, _scored(pod, _Taken((_specified,)), _defaults(pod, requests))
    except QuantityError:
        return asked, asked


def scored_requests_on_node(pod: Pod, requests: Mapping[str, int], minor: int) -> tuple[int, ...]:
    """Return the second part of ``scored_requests`` with resizes in flight.

    Args:
        requests: What ``pod_requests_on_node`` gives for it.

    Raises: QuantityError, naming the pod, for an amount that cannot be read.
    """
    return _scored(pod, _taken(pod, minor), _defaults(pod, requests))


def _defaults(pod: Pod, requests: Mapping[str, int]) -> Mapping[str, Quantity]:
    at_pod_level = _is_pod_level(pod)
    return {name: amount for name, amount in _UNASKED.items() if not (at_pod_level and name in requests)}


def is_resized(pod: Pod) -> bool:
    """Return whether ``pod_requests_on_node`` may differ from the spec: a status has resources other than requested.

    Where nothing is being resized, statuses repeat the spec.
    """
    spec, status = pod.spec, pod.status
    if status.resources is not None and (
        spec.resources is not None or status.allocated_resources is not None
    ):
        return True
    # Plain loops: this is asked of every pod on every node, and most statuses say nothing of resources.
    for statuses in (status.container_statuses, status.init_container_statuses):
        if statuses:
            for one in statuses:
                if (one.resources is not None or one.allocated_resources is not None) and _tells_others(
                    one, (*(spec.init_containers or ()), *(spec.containers or ()))
                ):
                    return True
    return False


def _specified(container: Container) -> _Amounts:
    return _read(container.resources.requests)


class _Taken(NamedTuple):
    """How the amounts of a pod are read.

    Attributes:
        readers: Each reads the containers in its way; the largest of their sums counts.
        sums: Sums over all containers that the pod's status gives, beside those.
        pod_level: What counts at pod level; None for what the spec says.
    """

    readers: tuple[_ReadContainer, ...]
    sums: tuple[_Amounts, ...] = ()
    pod_level: _Amounts | None = None


def _taken(pod: Pod, minor: int) -> _Taken:
    """Return how the amounts of a pod on a node are read."""
    condition = pod_condition(pod, "PodResizePending")
    infeasible = condition is not None and condition.reason == "Infeasible"
    statuses: dict[str, ContainerStatus] = {
        status.name: status
        for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    }

    plain_init = {one.name for one in pod.spec.init_containers or () if one.restart_policy != "Always"}

    def largest(container: Container) -> _Amounts:
        status = statuses.get(container.name)
        if status is None or container.name in plain_init:
            return _specified(container)
        return _resized(
            container.resources.requests, status.resources, status.allocated_resources, infeasible=infeasible
        )

    def unresized(container: Container) -> _Amounts:
        return {} if infeasible else _specified(container)

    def allocated(container: Container) -> _Amounts:
        status = statuses.get(container.name)
        if status is None or status.allocated_resources is None:
            return unresized(container)
        return _read(status.allocated_resources)

    def actual(container: Container) -> _Amounts:
        status = statuses.get(container.name)
        if status is None or status.resources is None or status.resources.requests is None:
            return allocated(container)
        return _read(status.resources.requests)

    spec, given = pod.spec.resources, pod.status
    pod_level = None
    if spec is not None and given.resources is not None and _is_pod_level(pod):
        pod_level = _resized(spec.requests, given.resources, given.allocated_resources, infeasible=infeasible)
        if minor < 37:
            pod_level = {name: pod_level.get(name, _NONE) for name in spec.requests or ()}
    if minor < 37:
        return _Taken((largest,), pod_level=pod_level)
    asked = () if infeasible else (_specified,)
    if (
        given.resources is not None
        and given.resources.requests is not None
        and given.allocated_resources is not None
    ):
        return _Taken(asked, (_read(given.allocated_resources), _read(given.resources.requests)), pod_level)
    return _Taken((*asked, allocated, actual), pod_level=pod_level)


def _is_pod_level(pod: Pod) -> bool:
    """Return whether the pod itself asks for a resource that can be asked for there."""
    asked = pod.spec.resources.requests if pod.spec.resources is not None else None
    return any(_at_pod_level(name) for name in asked or ())


def _at_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def _scored(pod: Pod, taken: _Taken, defaults: Mapping[str, Quantity]) -> tuple[int, ...]:
    def filled(requests_of: _ReadContainer) -> _ReadContainer:
        return lambda container: {**defaults, **requests_of(container)}

    readers = tuple(filled(reader) for reader in taken.readers)
    amounts = _whole_amounts(pod, readers, sums=taken.sums, pod_level=taken.pod_level)
    return tuple(amounts.get(name, 0) for name in SCORED)


def _tells_others(status: ContainerStatus, containers: Sequence[Container]) -> bool:
    actual, allocated = status.resources and status.resources.requests, status.allocated_resources
    for container in containers:
        if container.name == status.name:
            asked = container.resources.requests
            if (status.resources is not None and actual != asked) or allocated not in (None, asked):
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
    pod: Pod,
    readers: Iterable[_ReadContainer],
    *,
    sums: Iterable[_Amounts] = (),
    pod_level: _Amounts | None,
) -> dict[str, int]:
    exact: _Amounts = {}
    try:
        for reader in readers:
            _raise_to(exact, _aggregate(pod.spec.containers or (), pod.spec.init_containers or (), reader))
        for amounts in sums:
            _raise_to(exact, amounts)
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
    requests_of: _ReadContainer,
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
