"""Converts HPAs, VPAs and time tables to ElasticWorkloads: one per target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kubetide.elastic.convert.origin import (
    HORIZONTAL,
    SCHEDULE,
    VERTICAL,
    NotConvertible,
    check_metadata,
    merged_metadata,
    named,
)
from kubetide.elastic.convert.tables import FORMS, is_hpa, target_problems
from kubetide.elastic.sections import TargetKey, problems_of, target_key
from kubetide.horizontal.options.annotations import FORECAST, FORECAST_ZONE, FORECASTS
from kubetide.objects.base import Json
from kubetide.objects.elastic import ElasticSpec
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS, SCALED_OBJECTS, VPAS
from kubetide.schedules.kinds.elastic import schedule_problems

SECTION_OF: Final = {HPAS.kind: HORIZONTAL, VPAS.kind: VERTICAL, **dict.fromkeys(FORMS, SCHEDULE)}
"""Which section an object of a kind becomes."""

KINDS: Final = frozenset({*SECTION_OF, SCALED_OBJECTS.kind})
"""What is converted, or refused by name."""


@dataclass
class Converted:
    """The result: objects, and a sentence for each part that could not be converted."""

    objects: list[Json] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass
class _Target:
    """What scales one target."""

    reference: Json
    by_section: dict[str, Json] = field(default_factory=dict)


def to_elastic(objects: Sequence[Json]) -> Converted:
    """Return an ElasticWorkload per target of these objects; none for a target with a refused part."""
    found = Converted()
    targets: dict[TargetKey, _Target] = {}
    failed: set[TargetKey] = set()
    hpas = {(_home(one), one["metadata"]["name"]): one for one in objects if one["kind"] == HPAS.kind}
    order = list(SECTION_OF)
    for obj in sorted(
        objects, key=lambda one: order.index(one["kind"]) if one["kind"] in order else len(order)
    ):
        key: TargetKey | None = None
        try:
            reference = _target_of(obj, hpas)
            key = _key(_home(obj), reference)
            check_metadata(obj)
            _put(obj, targets.setdefault(key, _Target(reference)))
        except NotConvertible as error:
            found.refused.append(str(error))
            if key is not None:
                failed.add(key)
    taken: set[tuple[str, str]] = set()
    for key, target in targets.items():
        if key in failed:
            continue
        try:
            made = _made(key, target, taken)
        except NotConvertible as error:
            found.refused.append(str(error))
        else:
            taken.add((key[2], made["metadata"]["name"]))
            found.objects.append(made)
    return found


def _put(obj: Json, target: _Target) -> None:
    if obj["kind"] == SCALED_OBJECTS.kind:
        raise NotConvertible(
            f"{named(obj)}: cooldownPeriod and idleReplicaCount have no counterpart; keep it as it is"
        )
    section = SECTION_OF[obj["kind"]]
    if section in target.by_section:
        other = named(target.by_section[section])
        raise NotConvertible(f"{named(obj)}: {other} has the same target; put both into one object")
    target.by_section[section] = obj


def _home(obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "")


def _key(namespace: str, reference: Json) -> TargetKey:
    return target_key(namespace, msgspec.convert(reference, CrossVersionObjectReference, strict=False))


def _target_of(obj: Json, hpas: dict[tuple[str, str], Json]) -> Json:
    """Return what an object scales in the end: of a time table of an HPA, the HPA's target. Raises NotConvertible."""
    spec = obj.get("spec") or {}
    if obj["kind"] == SCALED_OBJECTS.kind:
        # As KEDA: what is left out is that of a Deployment.
        return {"apiVersion": "apps/v1", "kind": "Deployment", **(spec.get("scaleTargetRef") or {})}
    if obj["kind"] == HPAS.kind:
        return dict(spec.get("scaleTargetRef") or {})
    if obj["kind"] == VPAS.kind:
        return dict(spec.get("targetRef") or {})
    reference = spec.get(FORMS[obj["kind"]].target) or {}
    if reference.get("namespace") not in {None, "", _home(obj)}:
        raise NotConvertible(f"{named(obj)}: its target is in namespace {reference['namespace']}")
    if not is_hpa(reference):
        return {name: value for name, value in reference.items() if name != "namespace"}
    hpa = hpas.get((_home(obj), reference.get("name") or ""))
    if hpa is None:
        raise NotConvertible(
            f"{named(obj)}: changes HorizontalPodAutoscaler {reference.get('name')}, which is not among the objects"
        )
    return _target_of(hpa, hpas)


def _made(key: TargetKey, target: _Target, taken: set[tuple[str, str]]) -> Json:
    """Return the ElasticWorkload of a target. Raises NotConvertible."""
    parts = target.by_section
    first = next(parts[name] for name in (HORIZONTAL, VERTICAL, SCHEDULE) if name in parts)
    names = [first["metadata"]["name"], key[3], f"{first['metadata']['name']}-{key[1]}-{key[3]}"]
    name = next((one for one in names if (key[2], one) not in taken), names[-1])
    spec: Json = {"targetRef": target.reference}
    if HORIZONTAL in parts:
        spec[HORIZONTAL] = _without(parts[HORIZONTAL], "scaleTargetRef")
    if VERTICAL in parts:
        spec[VERTICAL] = _without(parts[VERTICAL], "targetRef")
    if SCHEDULE in parts:
        spec[SCHEDULE] = {"rules": _rules(parts)}
    sources = [(section, obj, _own_target(obj, target.reference)) for section, obj in parts.items()]
    metadata = merged_metadata(name, key[2], sources)
    if HORIZONTAL in parts:
        _move_forecast(metadata, spec)
    read = msgspec.convert(spec, ElasticSpec)
    problems = [*problems_of(read), *target_problems(target.reference)]
    if read.schedule is not None:
        problems += schedule_problems(read.schedule)
    if problems:
        raise NotConvertible(f"{named(first)}: {'; '.join(problems)}")
    return {
        "apiVersion": ELASTIC_WORKLOADS.api_version,
        "kind": ELASTIC_WORKLOADS.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _without(obj: Json, name: str) -> Json:
    return {field: value for field, value in (obj.get("spec") or {}).items() if field != name}


def _rules(parts: dict[str, Json]) -> list[Json]:
    table = parts[SCHEDULE]
    form = FORMS[table["kind"]]
    bounds = is_hpa((table.get("spec") or {}).get(form.target) or {})
    if not bounds and HORIZONTAL in parts:
        raise NotConvertible(
            f"{named(table)}: sets the size of what {named(parts[HORIZONTAL])} scales too, so that each undoes the "
            "other; make the HPA its target"
        )
    try:
        return form.read((table.get("spec") or {}), bounds)
    except NotConvertible as error:
        raise NotConvertible(f"{named(table)}: {error}") from error


def _own_target(obj: Json, reference: Json) -> Json | None:
    """Return the reference of an object where it is written otherwise than that of the ElasticWorkload."""
    spec = obj.get("spec") or {}
    own = {HPAS.kind: "scaleTargetRef", VPAS.kind: "targetRef"}.get(obj["kind"])
    given = spec.get(own or FORMS[obj["kind"]].target) or {}
    return None if given == reference else dict(given)


def _move_forecast(metadata: Json, spec: Json) -> None:
    """Make a section of the annotations that a forecast section stands for."""
    annotations = metadata["annotations"]
    if annotations.get(FORECAST) not in FORECASTS:
        return
    spec["forecast"] = {"mode": annotations.pop(FORECAST)}
    zone = annotations.pop(FORECAST_ZONE, None)
    if zone is not None:
        spec["forecast"]["timeZone"] = zone
