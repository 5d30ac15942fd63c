"""The scenario file: a cluster, what runs on it, the load it gets, and what goes wrong.

A scenario is YAML in the field's own words. Durations are Go durations (``90s``, ``1h30m``), times
are RFC 3339, a range of durations is ``2s-8s`` (drawn evenly from the seed) or one duration.
``docs/scenarios.md`` shows every field.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import msgspec

from kubetide.objects.base import json_name
from kubetide.objects.yaml_reading import Document, YamlError, read_documents
from kubetide.ports.errors import KubetideError
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Duration, Instant, parse_duration, parse_rfc3339


class ScenarioError(KubetideError):
    """A scenario that cannot be run; the text names file, field and fix."""


class _Part(msgspec.Struct, frozen=True, rename=json_name, kw_only=True, forbid_unknown_fields=True):
    """Base of every part: an unknown field is an error, because it is a typo."""


class InstanceTypeSpec(_Part, frozen=True, kw_only=True):
    """A machine type: what the catalogue says, and (``actual_memory``) what the machines really have."""

    cpu: str | int
    memory: str
    actual_memory: str | None = None
    pods: int = 110
    gpu: int = 0
    price_per_hour: float = 0.0
    reserved_cpu: str = "100m"
    reserved_memory: str = "512Mi"


class TaintSpec(_Part, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class NodeGroupSpec(_Part, frozen=True, kw_only=True):
    name: str
    instance_type: str
    min: int = 0
    max: int
    initial: int | None = None
    zone: str = "zone-a"
    labels: dict[str, str] = {}
    taints: tuple[TaintSpec, ...] = ()
    boot_time: str = "60s-90s"
    price_per_hour: float | None = None


class PodTimes(_Part, frozen=True, kw_only=True):
    """How long the steps of a pod's life take."""

    image_pull: str = "2s-8s"
    start: str = "1s-3s"
    ready: str = "3s-8s"
    stop: str = "1s-5s"


class BurstSpec(_Part, frozen=True, kw_only=True):
    """A burst on top of a daily load: ``at`` a time of day it rises to ``height`` times the load."""

    at: str
    height: float
    rise: str = "5m"
    hold: str = "20m"
    fall: str = "10m"


class DailySpec(_Part, frozen=True, kw_only=True):
    """An invented day: ``low`` to ``peak`` requests/s, highest at ``peak_at`` (time of day), with seeded noise."""

    low: float
    peak: float
    peak_at: str = "14:00"
    noise: float = 0.05
    burst: BurstSpec | None = None


class LoadSpec(_Part, frozen=True, kw_only=True):
    """Where a service's requests come from: a trace file or an invented day."""

    trace: str | None = None
    unit: str = "requests/s"
    step: str | None = None
    window: tuple[str, str] | None = None
    column: str | None = None
    gaps: str = "error"
    daily: DailySpec | None = None
    multiplier: float = 1.0


class ServiceSpec(_Part, frozen=True, kw_only=True):
    """A Deployment under load: the requests are shared by its ready pods."""

    deployment: str
    namespace: str = "default"
    cpu_seconds_per_request: float
    base_cpu: str = "0"
    base_memory: str = "64Mi"
    memory_per_request: str = "0"
    latency: str = "20ms"
    slo_latency: str | None = None
    max_queue: str = "0s"
    load: LoadSpec


class FaultSpec(_Part, frozen=True, kw_only=True):
    """Something that goes wrong between two times of the run."""

    kind: str
    group: str = ""
    start: str = "0s"
    end: str | None = None
    probability: float = 1.0


class ShowSpec(_Part, frozen=True, kw_only=True):
    """What `kubetide up` plays when it is not told otherwise."""

    start: str | None = None
    until: str | None = None
    speed: float = 60.0


class Scenario(_Part, frozen=True, kw_only=True):
    name: str
    description: str = ""
    start: str = "2026-03-02T00:00:00Z"
    duration: str = "24h"
    step: str = "15s"
    warm_up: str = "3m"
    instance_types: dict[str, InstanceTypeSpec] = {}
    node_groups: tuple[NodeGroupSpec, ...]
    pods: PodTimes = PodTimes()
    manifests: tuple[str, ...] = ()
    services: tuple[ServiceSpec, ...] = ()
    flags: dict[str, str | int | float | bool] = {}
    faults: tuple[FaultSpec, ...] = ()
    show: ShowSpec = ShowSpec()


FAULT_KINDS = ("stock-out", "boot-failure", "cloud-error", "watch-expiry", "api-error", "node-failure")


def load_scenario(path: Path, *, trace: Path | None = None) -> Scenario:
    """Reads and checks a scenario file.

    Args:
        path: The YAML file.
        trace: A trace that takes the place of the one of the first service with a load.
    Raises: ScenarioError naming file, field and fix.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text (byte {error.start})") from error
    document = _document(path, text)
    scenario = _convert(path, document)
    if trace is not None:
        scenario = _with_trace(path, scenario, trace)
    _check(path, scenario)
    return scenario


def _document(path: Path, text: str) -> Document:
    try:
        documents = list(read_documents(text))
    except YamlError as error:
        raise ScenarioError(f"{path} line {error.line}: not valid YAML: {error.detail}") from error
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise ScenarioError(
            f"{path}: a scenario is one YAML mapping with `name`, `nodeGroups`, `services` ...; this is not one"
        )
    return documents[0]


def _convert(path: Path, document: Document) -> Scenario:
    try:
        return msgspec.convert(document.value, Scenario, strict=True)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").lstrip(".")
        unknown = re.match(r"Object contains unknown field `(.+)`", text)
        line = document.line_of(f"{field}.{unknown[1]}" if unknown else field)
        raise ScenarioError(f"{path} line {line}: {_explain(text, field or 'the top level')}") from error


def _explain(text: str, field: str) -> str:
    """Turns msgspec's message into one with the field first and, for a typo, the likely name."""
    unknown = re.match(r"Object contains unknown field `(.+)`", text)
    if unknown:
        near = difflib.get_close_matches(unknown[1], _field_names(), n=1)
        hint = (
            f"did you mean `{near[0]}`?"
            if near
            else "remove it, or see docs/scenarios.md for the fields there are"
        )
        return f"{field}: unknown field `{unknown[1]}`; {hint}"
    missing = re.match(r"Object missing required field `(.+)`", text)
    if missing:
        return f"{field}: `{missing[1]}` is missing; add it"
    return f"{field}: {text[0].lower()}{text[1:]}"


def _field_names() -> list[str]:
    return sorted({name for part in _Part.__subclasses__() for name in part.__struct_encode_fields__})


def _with_trace(path: Path, scenario: Scenario, trace: Path) -> Scenario:
    for index, service in enumerate(scenario.services):
        load = msgspec.structs.replace(service.load, trace=str(trace.resolve()), daily=None)
        replaced = msgspec.structs.replace(service, load=load)
        services = (*scenario.services[:index], replaced, *scenario.services[index + 1 :])
        return msgspec.structs.replace(scenario, services=services)
    raise ScenarioError(f"{path}: services: empty, so a trace has nothing to drive; add a service")


class DurationRange(msgspec.Struct, frozen=True):
    """Between ``low`` and ``high``, drawn evenly."""

    low: Duration
    high: Duration


def parse_range(text: str) -> DurationRange:
    """Reads ``2s-8s`` or ``5s``. Raises ValueError."""
    low, dash, high = text.partition("-")
    first = parse_duration(low.strip())
    last = parse_duration(high.strip()) if dash else first
    if first < 0 or last < first:
        raise ValueError(f"{text}: a range goes from a smaller to a larger duration")
    return DurationRange(first, last)


def parse_time_of_day(text: str) -> Duration:
    """Reads ``14:30`` or ``14:30:15`` as time since midnight UTC. Raises ValueError."""
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", text)
    if not match:
        raise ValueError(f"{text}: a time of day is HH:MM or HH:MM:SS")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return Duration((hours * 3600 + minutes * 60 + seconds) * 1_000_000_000)


def start_of(scenario: Scenario) -> Instant:
    """When the run begins."""
    return parse_rfc3339(scenario.start)


class _Checker:
    """Collects what is wrong, so that one look mends all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._errors: list[str] = []

    def that(self, holds: bool, field: str, problem: str) -> None:
        if not holds:
            self._errors.append(f"{self._path}: {field}: {problem}")

    def parses(self, parse: Any, text: Any, field: str) -> None:
        try:
            parse(text)
        except (ValueError, QuantityError) as error:
            self._errors.append(f"{self._path}: {field}: {error}")

    def finish(self) -> None:
        if self._errors:
            raise ScenarioError("\n".join(self._errors))


def _check(path: Path, scenario: Scenario) -> None:
    check = _Checker(path)
    check.parses(parse_rfc3339, scenario.start, "start")
    for field in ("duration", "step", "warm_up"):
        check.parses(parse_duration, getattr(scenario, field), json_name(field))
    for field in ("image_pull", "start", "ready", "stop"):
        check.parses(parse_range, getattr(scenario.pods, field), f"pods.{json_name(field)}")
    _check_groups(check, scenario)
    _check_services(check, scenario)
    for index, fault in enumerate(scenario.faults):
        _check_fault(check, scenario, fault, f"faults[{index}]")
    if scenario.show.start:
        check.parses(parse_rfc3339, scenario.show.start, "show.start")
    if scenario.show.until:
        check.parses(parse_rfc3339, scenario.show.until, "show.until")
    check.that(scenario.show.speed > 0, "show.speed", f"{scenario.show.speed} must be greater than 0")
    check.finish()


def _check_groups(check: _Checker, scenario: Scenario) -> None:
    for name, kind in scenario.instance_types.items():
        where = f"instanceTypes.{name}"
        for field in ("cpu", "memory", "actual_memory", "reserved_cpu", "reserved_memory"):
            value = getattr(kind, field)
            if value is not None:
                check.parses(Quantity.parse, value, f"{where}.{json_name(field)}")
    seen: set[str] = set()
    check.that(bool(scenario.node_groups), "nodeGroups", "empty; a cluster needs at least one node group")
    for index, group in enumerate(scenario.node_groups):
        where = f"nodeGroups[{index}] ({group.name})"
        check.that(
            group.name not in seen,
            f"{where}.name",
            f"{group.name} stands twice; give each group its own name",
        )
        seen.add(group.name)
        check.that(group.min >= 0, f"{where}.min", f"{group.min} is negative; the least is 0")
        check.that(
            group.min <= group.max,
            f"{where}.min",
            f"min {group.min} is greater than max {group.max}; lower min or raise max",
        )
        initial = group.min if group.initial is None else group.initial
        check.that(
            group.min <= initial <= group.max,
            f"{where}.initial",
            f"{initial} is not between min {group.min} and max {group.max}",
        )
        check.parses(parse_range, group.boot_time, f"{where}.bootTime")


def _check_services(check: _Checker, scenario: Scenario) -> None:
    for index, service in enumerate(scenario.services):
        where = f"services[{index}] ({service.deployment})"
        check.that(
            service.cpu_seconds_per_request > 0,
            f"{where}.cpuSecondsPerRequest",
            f"{service.cpu_seconds_per_request} must be greater than 0",
        )
        for field in ("base_cpu", "base_memory", "memory_per_request"):
            check.parses(Quantity.parse, getattr(service, field), f"{where}.{json_name(field)}")
        for field in ("latency", "max_queue", "slo_latency"):
            if getattr(service, field) is not None:
                check.parses(parse_duration, getattr(service, field), f"{where}.{json_name(field)}")
        _check_load(check, service.load, f"{where}.load")


def _check_load(check: _Checker, load: LoadSpec, where: str) -> None:
    check.that(
        (load.trace is None) != (load.daily is None),
        where,
        "state either `trace` (a file) or `daily` (an invented day)",
    )
    check.that(load.multiplier > 0, f"{where}.multiplier", f"{load.multiplier} must be greater than 0")
    check.that(
        load.gaps in {"error", "hold"}, f"{where}.gaps", f"{load.gaps!r} is neither `error` nor `hold`"
    )
    check.that(
        load.unit in {"requests/s", "requests/step"},
        f"{where}.unit",
        f"{load.unit!r} is neither `requests/s` nor `requests/step`",
    )
    if load.step is not None:
        check.parses(parse_duration, load.step, f"{where}.step")
    if load.daily is not None:
        daily = load.daily
        check.that(0 <= daily.low <= daily.peak, f"{where}.daily.low", "must be between 0 and peak")
        check.parses(parse_time_of_day, daily.peak_at, f"{where}.daily.peakAt")
        if daily.burst is not None:
            check.parses(parse_time_of_day, daily.burst.at, f"{where}.daily.burst.at")
            for field in ("rise", "hold", "fall"):
                check.parses(parse_duration, getattr(daily.burst, field), f"{where}.daily.burst.{field}")


def _check_fault(check: _Checker, scenario: Scenario, fault: FaultSpec, where: str) -> None:
    near = difflib.get_close_matches(fault.kind, FAULT_KINDS, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(FAULT_KINDS)}"
    check.that(fault.kind in FAULT_KINDS, f"{where}.kind", f"unknown fault `{fault.kind}`{hint}")
    names = [group.name for group in scenario.node_groups]
    check.that(
        not fault.group or fault.group in names,
        f"{where}.group",
        f"no node group `{fault.group}`; there are {', '.join(names)}",
    )
    check.that(0 < fault.probability <= 1, f"{where}.probability", f"{fault.probability} is not in (0, 1]")
    check.parses(parse_duration, fault.start, f"{where}.start")
    if fault.end is not None:
        check.parses(parse_duration, fault.end, f"{where}.end")
