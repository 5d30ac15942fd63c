"""The spec of an HPA, parsed once per change: exact numbers instead of texts and options."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from kubetide.forecast.long_window import LONG
from kubetide.horizontal.facts.views import HpaView
from kubetide.horizontal.metrics.registry import read_metric
from kubetide.horizontal.metrics.types import Metric, Tolerance
from kubetide.horizontal.options.annotations import CALENDAR, NO_OPTIONS, Options, read_options
from kubetide.horizontal.settings import Settings
from kubetide.objects.hpa import (
    Behavior,
    HpaSpec,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
    ScalingRules,
)
from kubetide.objects.meta import Key
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Duration, minutes, seconds

_WINDOW: Final = minutes(5)

_DEFAULT_METRICS = (
    MetricSpec(
        type="Resource",
        resource=ResourceMetricSource(
            name="cpu", target=MetricTarget(type="Utilization", average_utilization=80)
        ),
    ),
)


class Policy(msgspec.Struct, frozen=True):
    """One scaling policy: a change within a period."""

    percent: bool
    value: int
    period: Duration


class Rules(msgspec.Struct, frozen=True):
    """The behavior of one direction: window, policies and selectPolicy."""

    window: Duration
    select: str
    policies: tuple[Policy, ...]

    @property
    def longest_period(self) -> Duration:
        return max((policy.period for policy in self.policies), default=Duration(0))


class Autoscaler(msgspec.Struct, frozen=True):
    """An HPA, ready for decisions.

    Attributes:
        reference: ``KIND/NAMESPACE/NAME`` of the target, as errors name it.
        up: Behaviour upwards; None for both directions when the spec has no behaviour.
        external: Whether a metric reads something else than the target's own pods.
        options: What its annotations ask for beyond upstream, and flags that stand for them.
        window: Of scale-downs where there is no behaviour.
        may_hold_longer: Whether scale-downs have a long window besides, while that pays.
        plain: Whether it is decided by samples of its pods alone, without options.
        generation: What its status says that was observed; None where it says nothing, as with v1.36.
    """

    key: Key
    uid: str
    api_version: str
    kind: str
    target: str
    minimum: int
    maximum: int
    metrics: tuple[Metric, ...]
    up: Rules | None
    down: Rules | None
    tolerance: Tolerance
    external: bool
    options: Options = NO_OPTIONS
    window: Duration = _WINDOW
    may_hold_longer: bool = False
    plain: bool = False
    generation: int | None = None

    @property
    def reference(self) -> str:
        return f"{self.kind}/{self.key[0]}/{self.target}"


def read_spec(view: HpaView, settings: Settings) -> Autoscaler:
    """Return the parsed spec; an unreadable metric becomes one that returns the error when evaluated."""
    spec = view.spec
    ref = spec.scale_target_ref
    metrics = spec.metrics or _DEFAULT_METRICS
    behavior = spec.behavior
    options = _with_flags(read_options(view.annotations, settings.options), settings)
    down = None if behavior is None else behavior.scale_down
    stated = down is not None and down.stabilization_window_seconds is not None
    # Nodes come and go slower than pods: what is given back too early is bought again.
    longer = options.forecast == CALENDAR and settings.downscale_stabilization < LONG and not stated
    read = tuple(read_metric(metric, view.namespace, settings.minor) for metric in metrics)
    return Autoscaler(
        key=(view.namespace, view.name),
        uid=view.uid,
        api_version=ref.api_version,
        kind=ref.kind,
        target=ref.name,
        minimum=1 if spec.min_replicas is None else spec.min_replicas,
        maximum=spec.max_replicas,
        metrics=read,
        up=_up(behavior.scale_up) if behavior else None,
        down=_down(behavior.scale_down, settings) if behavior else None,
        tolerance=_tolerance(spec, settings, options.tolerance),
        external=any(metric.type in {"Object", "External"} for metric in metrics),
        options=options,
        window=settings.downscale_stabilization,
        may_hold_longer=longer,
        generation=view.generation if settings.minor >= 37 else None,
        plain=not options.any and all(metric.resource and not metric.problem for metric in read),
    )


def _with_flags(options: Options, settings: Settings) -> Options:
    """Return the options with what flags say of all HPAs."""
    if settings.forecast and not options.forecast:
        options = replace(options, forecast=settings.forecast)
    if settings.emptiest_node_first and not options.emptiest_node_first:
        options = replace(options, emptiest_node_first=True)
    return options


def _up(rules: ScalingRules | None) -> Rules:
    """Return the rules upwards. Defaults: no window; the larger of 4 pods and 100 % in 15 s."""
    rules = rules or ScalingRules()
    default = (
        Policy(percent=False, value=4, period=seconds(15)),
        Policy(percent=True, value=100, period=seconds(15)),
    )
    return _rules(rules, Duration(0), default)


def _down(rules: ScalingRules | None, settings: Settings) -> Rules:
    """Return the rules downwards. Defaults: the window of the flag in whole seconds, as the API has it; 100 % in 15 s."""
    default = (Policy(percent=True, value=100, period=seconds(15)),)
    window = seconds(settings.downscale_stabilization // seconds(1))
    return _rules(rules or ScalingRules(), window, default)


def _rules(rules: ScalingRules, window: Duration, default: tuple[Policy, ...]) -> Rules:
    stated = rules.stabilization_window_seconds
    policies = tuple(
        Policy(percent=p.type == "Percent", value=p.value, period=seconds(p.period_seconds))
        for p in rules.policies or ()
    )
    return Rules(
        window=window if stated is None else seconds(stated),
        select=rules.select_policy or "Max",
        policies=policies or default,
    )


def _tolerance(spec: HpaSpec, settings: Settings, own: float | None) -> Tolerance:
    default = settings.tolerance if own is None else own
    behavior = (spec.behavior if settings.has_own_tolerances else None) or Behavior()
    return Tolerance(
        up=_of_direction(behavior.scale_up, default),
        down=_of_direction(behavior.scale_down, default),
    )


def _of_direction(rules: ScalingRules | None, default: float) -> float:
    if rules is None or rules.tolerance is None:
        return default
    try:
        quantity = Quantity.parse(rules.tolerance)
    except QuantityError:
        return default
    # Upstream multiplies the mantissa by the power of ten as doubles (AsApproximateFloat64).
    return (
        float(quantity.mantissa) * 10.0**quantity.exponent if quantity.exponent else float(quantity.mantissa)
    )
