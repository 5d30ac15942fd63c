"""Converts ElasticWorkloads to the HPA, the VPA and the time table of their sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kubetide.elastic.convert.forward import Converted
from kubetide.elastic.convert.origin import (
    HORIZONTAL,
    SCHEDULE,
    VERTICAL,
    NotConvertible,
    Origin,
    check_metadata,
    metadata_back,
    named,
    origins_of,
)
from kubetide.elastic.convert.tables import FORMS, Form, is_hpa, target_problems
from kubetide.elastic.sections import problems_of
from kubetide.horizontal.options.annotations import FORECAST, FORECAST_ZONE, FORECASTS
from kubetide.objects.base import Json
from kubetide.objects.elastic import ElasticSpec
from kubetide.objects.kinds import HPAS, VPAS, Kind
from kubetide.schedules.kinds.elastic import schedule_problems


def from_elastic(objects: Sequence[Json]) -> Converted:
    """Return the objects of the sections of these ElasticWorkloads; one with a refused part gives none."""
    found = Converted()
    for obj in objects:
        try:
            check_metadata(obj)
            found.objects += _parts(obj)
        except NotConvertible as error:
            found.refused.append(str(error))
    return found


def _parts(obj: Json) -> list[Json]:
    """Return the objects of one ElasticWorkload. Raises NotConvertible."""
    spec, origins = _checked(obj), origins_of(obj)
    sections = [name for name in (HORIZONTAL, VERTICAL, SCHEDULE) if name in spec]
    made: list[Json] = []
    for section in sections:
        origin = origins.get(section)
        metadata = metadata_back(obj, origin, origins.values(), takes_new=section == sections[0])
        if section == SCHEDULE:
            hpa_name = made[0]["metadata"]["name"] if HORIZONTAL in sections else ""
            made.append(_table(obj, origin, metadata, hpa_name))
            continue
        kind: Kind[Any] = HPAS if section == HORIZONTAL else VPAS
        field = "scaleTargetRef" if section == HORIZONTAL else "targetRef"
        target = spec["targetRef"] if origin is None or origin.target is None else origin.target
        if section == HORIZONTAL:
            _put_forecast(metadata, spec.get("forecast"))
        made.append(_object(kind, metadata, {field: target, **spec[section]}))
    return made


def _checked(obj: Json) -> Json:
    """Return the spec; each section that is null is left out. Raises NotConvertible for what no server would take."""
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if value is not None}
    read = msgspec.convert(spec, ElasticSpec)
    problems = [*problems_of(read), *target_problems(spec.get("targetRef") or {})]
    if read.schedule is not None and read.schedule.rules is None:
        problems.append("spec.schedule.rules: is missing")
    elif read.schedule is not None:
        problems += schedule_problems(read.schedule)
    if problems:
        raise NotConvertible(f"{named(obj)}: {'; '.join(problems)}")
    return spec


def _object(kind: Kind[Any], metadata: Json, spec: Json) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _put_forecast(metadata: Json, forecast: Json | None) -> None:
    if forecast is None:
        return
    said = {FORECAST: forecast.get("mode") or FORECASTS[0]}
    if forecast.get("timeZone"):
        said[FORECAST_ZONE] = forecast["timeZone"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **said}


def _table(obj: Json, origin: Origin | None, metadata: Json, hpa: str) -> Json:
    schedule = obj["spec"][SCHEDULE]
    for name in ("timeZone", "calendars"):
        if schedule.get(name):
            raise NotConvertible(f"{named(obj)}: schedule.{name}: a time table has none")
    form: Form = next(iter(FORMS.values()))
    if origin is not None and origin.kind in FORMS:
        form = FORMS[origin.kind]
    target = dict(obj["spec"]["targetRef"])
    if hpa:
        target = {"apiVersion": HPAS.api_version, "kind": HPAS.kind, "name": hpa}
    if origin is not None and origin.target is not None and is_hpa(origin.target) == bool(hpa):
        target = origin.target
    try:
        body = form.write(schedule["rules"], bool(hpa))
    except NotConvertible as error:
        raise NotConvertible(f"{named(obj)}: {error}") from error
    return _object(form.kind, metadata, {form.target: target, **body})
