"""Validation rules of VPA objects beyond their schema, and their defaults.

Source: vertical-pod-autoscaler 1.8.1, pkg/admission-controller/resource/vpa.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubetide.objects.base import Json
from kubetide.objects.field_errors import (
    REQUIRED,
    TOO_MANY,
    FieldError,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubetide.objects.vpa import (
    AUTO,
    BOOST_FACTOR,
    BOOST_QUANTITY,
    CONTAINER_AUTO,
    CONTAINER_OFF,
    IN_PLACE,
    RECREATE,
    REQUESTS_AND_LIMITS,
    UPDATE_MODES,
    ContainerPolicy,
    StartupBoost,
    UpdatePolicy,
    VpaSpec,
)
from kubetide.units.quantity import Quantity
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.resources.amounts import CPU, MEMORY, RESOURCES, Amounts, read_amounts

_MODES: Final = tuple(sorted(mode for mode in UPDATE_MODES if mode != AUTO))
_CONTAINER_MODES: Final = (CONTAINER_AUTO, CONTAINER_OFF)
_NEEDS_CONFIG: Final = "not supported when feature flag PerVPAConfig is disabled"
_NEEDS_BOOST: Final = "in order to use startupBoost, you must enable feature gate CPUStartupBoost in the admission-controller args"
_NEEDS_IN_PLACE: Final = "in order to use UpdateMode InPlace, you must enable feature gate InPlace in the admission-controller args"
_AUTO_WARNING: Final = (
    'spec.updatePolicy: "Auto" mode is deprecated and will be removed in a future API version. '
    f"Use explicit update modes like: [{' '.join(_MODES)}]. "
    "See https://github.com/kubernetes/autoscaler/issues/8424 for more details."
)
_SPEC: Final = "spec"


@dataclass(slots=True)
class Findings:
    """The errors of an object, and its warnings."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def default_patches(spec: VpaSpec) -> list[Json]:
    """Return the patch that completes an accepted object."""
    if spec.update_policy is not None:
        return []
    return [{"op": "add", "path": "/spec/updatePolicy", "value": {"updateMode": RECREATE}}]


def validate(spec: VpaSpec, old: VpaSpec | None, gates: FeatureGates) -> Findings:
    """Return the findings about a VPA object.

    What is behind a gate that is off stays allowed in an object that had it before. Raises: QuantityError.
    """
    findings = Findings()
    uses_config = gates.per_vpa_config or (old is not None and _has_config(old))
    uses_boost = gates.cpu_startup_boost or (old is not None and _had_boost(old))
    if spec.update_policy is not None:
        _check_update_policy(spec.update_policy, old, gates, findings, uses_config=uses_config)
    known = _known_resources(old)
    for index, policy in enumerate(_policies(spec)):
        at = f"{_SPEC}.resourcePolicy.containerPolicies[{index}]"
        errors = findings.errors
        errors += _check_container(at, policy)
        errors += _check_allowed(at, policy)
        _check_controlled(at, policy, known, findings)
        errors += _check_config(at, policy, allowed=uses_config)
        errors += _check_boost(f"{at}.startupBoost", policy.startup_boost, allowed=uses_boost)
    findings.errors += _check_boost(f"{_SPEC}.startupBoost", spec.startup_boost, allowed=uses_boost)
    number = len(spec.recommenders or ())
    if number > 1:
        findings.errors.append(
            FieldError(f"{_SPEC}.recommenders", TOO_MANY, number, "must have at most 1 item")
        )
    return findings


def _check_update_policy(
    policy: UpdatePolicy, old: VpaSpec | None, gates: FeatureGates, findings: Findings, *, uses_config: bool
) -> None:
    at, errors = f"{_SPEC}.updatePolicy", findings.errors
    mode = policy.update_mode
    if mode is None:
        errors.append(required(f"{at}.updateMode", "updateMode is required if UpdatePolicy is used"))
    elif mode == AUTO:
        findings.warnings.append(_AUTO_WARNING)
    elif mode not in UPDATE_MODES:
        errors.append(unsupported(f"{at}.updateMode", mode, _MODES))
    elif mode == IN_PLACE and not gates.in_place:
        before = old.update_policy if old is not None else None
        if before is None or before.update_mode != IN_PLACE:
            errors.append(forbidden(f"{at}.updateMode", _NEEDS_IN_PLACE))
    if policy.min_replicas is not None and policy.min_replicas <= 0:
        errors.append(invalid(f"{at}.minReplicas", policy.min_replicas, "minReplicas has to be positive"))
    if policy.evict_after_oom_seconds is not None:
        where = f"{at}.evictAfterOOMSeconds"
        errors += _check_least(where, policy.evict_after_oom_seconds, 1, allowed=uses_config)


def _check_container(at: str, policy: ContainerPolicy) -> Iterable[FieldError]:
    if not policy.container_name:
        yield FieldError(f"{at}.containerName", REQUIRED)
    if policy.mode is not None and policy.mode not in _CONTAINER_MODES:
        yield unsupported(f"{at}.mode", policy.mode, _CONTAINER_MODES)
    if policy.mode == CONTAINER_OFF and policy.controlled_values == REQUESTS_AND_LIMITS:
        yield forbidden(
            f"{at}.controlledValues",
            "controlledValues shouldn't be specified if container scaling mode is off",
        )


def _check_allowed(at: str, policy: ContainerPolicy) -> Iterable[FieldError]:
    least, most = read_amounts(policy.min_allowed), read_amounts(policy.max_allowed)
    yield from _check_resolution(f"{at}.minAllowed", least)
    for name in sorted(least.keys() & most.keys()):
        if most[name] < least[name]:
            detail = f'max resource for {name} is lower than min of "{least[name]}"'
            yield invalid(f"{at}.maxAllowed[{name}]", str(most[name]), detail)
    yield from _check_resolution(f"{at}.maxAllowed", most)


def _check_resolution(at: str, amounts: Amounts) -> Iterable[FieldError]:
    for name in sorted(amounts):
        amount = amounts[name]
        if name == CPU and amount != Quantity(amount.exact_milli(), -3):
            yield invalid(f"{at}[{name}]", str(amount), "must be a whole number of milli CPUs")
        if name == MEMORY and amount != Quantity(amount.value()):
            yield invalid(f"{at}[{name}]", str(amount), "must be a whole number of bytes")


def _check_controlled(at: str, policy: ContainerPolicy, known: frozenset[str], findings: Findings) -> None:
    for place, name in enumerate(policy.controlled_resources or ()):
        if name in RESOURCES:
            continue
        where = f"{at}.controlledResources[{place}]"
        if name in known:
            findings.warnings.append(
                f'{where}: unsupported value "{name}" is allowed only because it is present in the existing '
                'VPA object; supported values: "cpu", "memory"'
            )
        else:
            findings.errors.append(unsupported(where, name, RESOURCES))


def _check_config(at: str, policy: ContainerPolicy, *, allowed: bool) -> Iterable[FieldError]:
    if policy.oom_bump_up_ratio is not None:
        # In thousandths, rounded up, as upstream compares and prints it.
        ratio = Quantity.parse(policy.oom_bump_up_ratio).milli_value() / 1000.0
        where = f"{at}.oomBumpUpRatio"
        if not allowed:
            yield forbidden(where, _NEEDS_CONFIG)
        elif ratio < 1.0:
            shown = int(ratio) if ratio.is_integer() else ratio
            yield invalid(where, shown, "must be greater than or equal to 1.0")
    least: Sequence[tuple[str, int | None, int]] = (
        (
            "oomMinBumpUp",
            None if policy.oom_min_bump_up is None else Quantity.parse(policy.oom_min_bump_up).value(),
            0,
        ),
        ("memoryAggregationIntervalSeconds", policy.memory_aggregation_interval_seconds, 1),
        ("memoryAggregationIntervalCount", policy.memory_aggregation_interval_count, 1),
    )
    for name, value, bound in least:
        if value is not None:
            yield from _check_least(f"{at}.{name}", value, bound, allowed=allowed)


def _check_least(at: str, value: int, least: int, *, allowed: bool) -> Iterable[FieldError]:
    if not allowed:
        yield forbidden(at, _NEEDS_CONFIG)
    elif value < least:
        yield invalid(at, value, f"must be greater than or equal to {least}")


def _check_boost(at: str, boost: StartupBoost | None, *, allowed: bool) -> Iterable[FieldError]:
    if boost is None:
        return
    if not allowed:
        yield forbidden(at, _NEEDS_BOOST)
        return
    cpu = boost.cpu
    if cpu is None:
        return
    if not cpu.type:
        yield required(f"{at}.cpu.type", "must be either Factor or Quantity")
    elif cpu.type == BOOST_FACTOR:
        if cpu.factor is None:
            yield required(f"{at}.cpu.factor", "required when type is Factor")
        elif cpu.factor < 1:
            yield invalid(f"{at}.cpu.factor", cpu.factor, "must be >= 1 for type Factor")
    elif cpu.type == BOOST_QUANTITY:
        if cpu.quantity is None:
            yield required(f"{at}.cpu.quantity", "required when type is Quantity")
        else:
            quantity = Quantity.parse(cpu.quantity)
            if quantity != Quantity(quantity.exact_milli(), -3):
                yield invalid(f"{at}.cpu.quantity", str(quantity), "must be a whole number of milli CPUs")
    else:
        yield unsupported(f"{at}.cpu.type", cpu.type, (BOOST_FACTOR, BOOST_QUANTITY))


# ── what the object had before ──────────────────────────────────────────────────────────────────


def _policies(spec: VpaSpec | None) -> Sequence[ContainerPolicy]:
    policy = spec.resource_policy if spec is not None else None
    return (policy.container_policies if policy is not None else None) or ()


def _known_resources(old: VpaSpec | None) -> frozenset[str]:
    return frozenset(name for policy in _policies(old) for name in policy.controlled_resources or ())


def _had_boost(old: VpaSpec) -> bool:
    """Return whether a boost was in use: of the whole pod one with ``cpu``, of a container any."""
    whole = old.startup_boost
    if whole is not None and whole.cpu is not None:
        return True
    return any(one.startup_boost is not None for one in _policies(old))


def _has_config(old: VpaSpec) -> bool:
    policy = old.update_policy
    if policy is not None and policy.evict_after_oom_seconds is not None:
        return True
    return any(
        value is not None
        for one in _policies(old)
        for value in (
            one.oom_bump_up_ratio,
            one.oom_min_bump_up,
            one.memory_aggregation_interval_seconds,
            one.memory_aggregation_interval_count,
        )
    )
