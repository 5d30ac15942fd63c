"""CPU start-up boost: more CPU while a container starts, and the way back.

Source: vertical-pod-autoscaler 1.8.1, AEP-7862 and pkg/admission-controller/resource/pod/patch.
"""

from __future__ import annotations

import json

import msgspec

from kubetide.objects.pod import Pod, pod_condition
from kubetide.objects.vpa import (
    BOOST_FACTOR,
    BOOST_QUANTITY,
    REQUESTS_ONLY,
    CpuStartupBoost,
    VpaSpec,
)
from kubetide.units.quantity import ZERO, Quantity
from kubetide.units.time import Duration, Instant, TimeFormatError, after, parse_rfc3339, seconds
from kubetide.vertical.annotations import boost_annotation, boosted_containers
from kubetide.vertical.resources.amounts import CPU, RESOURCES, proportional_limit, read_amounts
from kubetide.vertical.resources.capping import Running
from kubetide.vertical.resources.pod_resources import ContainerResources
from kubetide.vertical.resources.policies import container_policy, controlled_values, startup_boost

_MAX_INT64 = (1 << 63) - 1
_A_MILLI = Quantity(1, -3)
_YEAR_ONE = parse_rfc3339("0001-01-01T00:00:00Z")


class BoostError(ValueError):
    """A start-up boost that cannot be calculated, or an annotation of one that cannot be read."""


# ── at admission ────────────────────────────────────────────────────────────────────────────────


def apply_boost(container: Running, spec: VpaSpec, desired: ContainerResources, most: Quantity) -> str | None:
    """Raise the CPU in ``desired``; return what the boost annotation keeps, None without a boost.

    The base is the recommended CPU, else the container's own request. A limit keeps its ratio; with
    ``RequestsOnly`` the request stays 1m below the limit.

    Args:
        most: ``--max-allowed-cpu-boost``; zero for no cap.

    Raises: BoostError.
    """
    policy = startup_boost(spec, container.name)
    if policy is None:
        return None
    if policy.cpu is None:
        raise BoostError(
            f"the startupBoost of container {container.name} has no cpu: set startupBoost.cpu or drop it"
        )
    own = container.requests.get(CPU, ZERO)
    base = desired.requests.get(CPU, ZERO)
    boosted = boosted_cpu(own if base.is_zero() else base, policy.cpu)
    if not most.is_zero() and boosted > most:
        boosted = most
    limit = container.limits.get(CPU)
    if controlled_values(spec.resource_policy, container.name) == REQUESTS_ONLY:
        if limit is not None and boosted.milli_value() > limit.milli_value():
            boosted = limit - _A_MILLI if limit > _A_MILLI else limit
    else:
        raised, _ = proportional_limit(CPU, limit or ZERO, own, boosted, ZERO)
        if raised is not None:
            desired.limits[CPU] = raised
    desired.requests[CPU] = boosted
    return _saved(container)


def boosted_cpu(base: Quantity, boost: CpuStartupBoost) -> Quantity:
    """Return the CPU of a container while it starts. Raises: BoostError."""
    kind = boost.type or BOOST_FACTOR
    if kind == BOOST_FACTOR:
        if boost.factor is None:
            raise BoostError("startupBoost.cpu.factor is required when the type is Factor")
        if boost.factor < 1:
            raise BoostError(f"startupBoost.cpu.factor must be >= 1, not {boost.factor}")
        return Quantity(min(int(float(base.milli_value()) * float(boost.factor)), _MAX_INT64), -3)
    if kind == BOOST_QUANTITY:
        if boost.quantity is None:
            raise BoostError("startupBoost.cpu.quantity is required when the type is Quantity")
        return Quantity(base.milli_value() + Quantity.parse(boost.quantity).milli_value(), -3)
    raise BoostError(f"startupBoost.cpu.type must be Factor or Quantity, not {kind}")


def _saved(container: Running) -> str:
    sides = {"requests": container.requests, "limits": container.limits}
    saved = {
        side: {name: str(amounts[name]) for name in RESOURCES if name in amounts}
        for side, amounts in sides.items()
    }
    return json.dumps(saved, separators=(",", ":"))


# ── after the start ─────────────────────────────────────────────────────────────────────────────


def has_boost(spec: VpaSpec) -> bool:
    """Return whether a VPA boosts any container."""
    policies = (spec.resource_policy.container_policies if spec.resource_policy is not None else None) or ()
    return spec.startup_boost is not None or any(one.startup_boost is not None for one in policies)


def is_boosted(pod: Pod) -> bool:
    """Return whether a container of the pod still has the CPU of its start."""
    return bool(boosted_containers(pod.metadata.annotations))


def expired_boosts(pod: Pod, spec: VpaSpec, now: Instant) -> tuple[tuple[str, ...], Duration | None]:
    """Return the boosted containers whose time is up, and how long until the next one's is.

    The time runs while the pod is Ready; a container whose boost lasts no time, or is gone from the VPA, is due at
    once. None: the pod is not Ready, or nothing else is boosted.
    """
    ready = pod_condition(pod, "Ready")
    if ready is None or ready.status != "True":
        return (), None
    try:
        since = parse_rfc3339(ready.last_transition_time or "")
    except TimeFormatError:
        since = _YEAR_ONE
    due, waits = [], []
    for container in boosted_containers(pod.metadata.annotations):
        lasting = _lasting(spec, container)
        ends = after(since, lasting)
        if not lasting or ends < now:
            due.append(container)
        else:
            waits.append(Duration(ends - now))
    return tuple(due), min(waits, default=None)


def _lasting(spec: VpaSpec, container: str) -> Duration:
    """Return how long a container is boosted: what its own policy says, else what the VPA says for all, else 0."""
    policy = container_policy(spec.resource_policy, container)
    for boost in (policy.startup_boost if policy is not None else None, spec.startup_boost):
        if boost is not None and boost.cpu is not None and boost.cpu.duration_seconds is not None:
            return seconds(boost.cpu.duration_seconds)
    return Duration(0)


class _Saved(msgspec.Struct):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


def resources_before(pod: Pod, container: str) -> ContainerResources:
    """Return requests and limits that a boosted container had before. Raises: BoostError."""
    name = boost_annotation(container)
    text = (pod.metadata.annotations or {}).get(name, "")
    try:
        saved = msgspec.json.decode(text, type=_Saved)
        return ContainerResources(
            read_amounts(dict(saved.requests or {})), read_amounts(dict(saved.limits or {}))
        )
    except ValueError as error:  # msgspec's errors and QuantityError
        raise BoostError(f"annotation {name} of pod {pod.metadata.name} cannot be read: {error}") from error
