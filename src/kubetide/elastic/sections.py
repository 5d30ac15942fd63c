"""An ElasticWorkload as the objects that the loops know, and the problems of its sections."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.hpa import validate_hpa, validate_target_group
from kubetide.forecast.zones import is_zone
from kubetide.horizontal.options.annotations import FORECAST, FORECAST_ZONE, FORECASTS
from kubetide.objects.base import Json
from kubetide.objects.elastic import ElasticSpec, ElasticWorkload, HorizontalSection, ScheduleStatus
from kubetide.objects.hpa import CrossVersionObjectReference, HorizontalPodAutoscaler, HpaSpec, HpaStatus
from kubetide.objects.kinds import HPAS, VPAS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.vpa import VerticalPodAutoscaler, VpaSpec, VpaStatus
from kubetide.units.quantity import QuantityError
from kubetide.vertical.admission.validation import validate
from kubetide.vertical.gates import FeatureGates

_ALL_GATES: Final = FeatureGates(cpu_startup_boost=True, in_place=True, per_vpa_config=True)
"""What a gate of the vertical loops leaves out is left out by them, as of a VPA."""


def problems_of(spec: ElasticSpec) -> list[str]:
    """Return the problems of the sections, each preceded by its field; the schedule's loop checks its own."""
    found = []
    if not (spec.horizontal or spec.vertical or spec.schedule):
        found.append("spec: write at least one of horizontal, vertical and schedule")
    found += _horizontal_problems(spec)
    if spec.vertical is not None:
        try:
            errors = validate(vpa_spec(spec), None, _ALL_GATES).errors
            found += [_in_section(str(one), "vertical") for one in errors]
        except QuantityError as error:
            found.append(f"spec.vertical: {error}")
    forecast = spec.forecast
    if forecast is not None:
        if spec.horizontal is None:
            found.append("spec.forecast: needs a horizontal section, whose load it forecasts")
        if forecast.mode and forecast.mode not in FORECASTS:
            found.append(f'spec.forecast.mode: "{forecast.mode}" is none of {", ".join(FORECASTS)}')
        if forecast.time_zone and not is_zone(forecast.time_zone):
            found.append(f'spec.forecast.timeZone: unknown time zone "{forecast.time_zone}"')
    return found


def _horizontal_problems(spec: ElasticSpec) -> list[str]:
    if spec.horizontal is None:
        ref = spec.target_ref
        return [f"spec.targetRef.{name}: is missing" for name in ("kind", "name") if not getattr(ref, name)]
    obj: Json = {"spec": msgspec.json.decode(msgspec.json.encode(hpa_spec(spec, None)))}
    obj = defaults(HPAS, {"metadata": {}, **obj})
    errors = [*validate_hpa(obj), *validate_target_group(obj, None)]
    return [_in_section(str(one), "horizontal") for one in errors]


def _in_section(text: str, section: str) -> str:
    for name in ("scaleTargetRef", "targetRef"):
        if text.startswith(f"spec.{name}"):
            return "spec.targetRef" + text.removeprefix(f"spec.{name}")
    return f"spec.{section}" + text.removeprefix("spec")


def hpa_spec(spec: ElasticSpec, bounds: ScheduleStatus | None) -> HpaSpec:
    """Return the spec of the HPA, within the schedule's present bounds."""
    section = spec.horizontal
    assert section is not None
    low, high = effective_bounds(section, bounds)
    return HpaSpec(
        scale_target_ref=spec.target_ref,
        min_replicas=low,
        max_replicas=high,
        metrics=section.metrics,
        behavior=section.behavior,
    )


def effective_bounds(section: HorizontalSection, bounds: ScheduleStatus | None) -> tuple[int | None, int]:
    """Return the effective bounds: the schedule's bounds override the section's."""
    low, high = section.min_replicas, section.max_replicas
    if bounds is None:
        return low, high
    if bounds.max_replicas is not None:
        high = bounds.max_replicas
        low = None if low is None else min(low, high)
    if bounds.min_replicas is not None:
        low = bounds.min_replicas
        high = max(low, high)
    return low, high


def vpa_spec(spec: ElasticSpec) -> VpaSpec:
    """Return the spec of the VPA."""
    section = spec.vertical
    assert section is not None
    return VpaSpec(
        target_ref=spec.target_ref,
        update_policy=section.update_policy,
        resource_policy=section.resource_policy,
        recommenders=section.recommenders,
        startup_boost=section.startup_boost,
    )


def as_hpa(found: ElasticWorkload) -> HorizontalPodAutoscaler | None:
    """Return the horizontal section as an HPA of the object's name; None without one, and while the schedule sets 0."""
    spec, bounds = found.spec, found.status.schedule if found.spec.schedule is not None else None
    if spec.horizontal is None or (bounds is not None and bounds.max_replicas == 0):
        return None
    return HorizontalPodAutoscaler(
        api_version=HPAS.api_version,
        kind=HPAS.kind,
        metadata=_metadata(found),
        spec=hpa_spec(spec, bounds),
        status=found.status.horizontal or HpaStatus(),
    )


def _metadata(found: ElasticWorkload) -> ObjectMeta:
    """Return the object's metadata; the forecast section stands for its annotations."""
    forecast, meta = found.spec.forecast, found.metadata
    if forecast is None:
        return meta
    said = {FORECAST: forecast.mode or FORECASTS[0]}
    if forecast.time_zone:
        said[FORECAST_ZONE] = forecast.time_zone
    return replace(meta, annotations={**(meta.annotations or {}), **said})


def as_vpa(found: ElasticWorkload) -> VerticalPodAutoscaler | None:
    """Return the vertical section as a VPA of the object's name; None without one."""
    if found.spec.vertical is None:
        return None
    return VerticalPodAutoscaler(
        api_version=VPAS.api_version,
        kind=VPAS.kind,
        metadata=found.metadata,
        spec=vpa_spec(found.spec),
        status=found.status.vertical or VpaStatus(),
    )


TargetKey = tuple[str, str, str, str]
"""Group, kind in lower case, namespace and name: one target, however it is written."""


def target_key(namespace: str, ref: CrossVersionObjectReference) -> TargetKey:
    """Return the key of a target."""
    return ref.api_version.rpartition("/")[0], ref.kind.lower(), namespace, ref.name
