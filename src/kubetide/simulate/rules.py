"""What is wrong with the content of a scenario whose form is right."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubetide.embedded.cloud import CATALOGUE
from kubetide.objects.base import json_name
from kubetide.objects.yaml_reading import Document
from kubetide.runtime.settings import FlagError, parse_flags
from kubetide.simulate.build import (
    Manifests,
    deployments_of,
    instance_type_of,
    manifests_in,
    no_deployment,
    no_instance_type,
)
from kubetide.simulate.notices import targets_missing, twice_in
from kubetide.simulate.spec import (
    FAULT_KINDS,
    MOST_SPEED,
    DailySpec,
    FaultSpec,
    LoadSpec,
    NodeGroupSpec,
    Scenario,
    ScenarioError,
    ServiceSpec,
    is_speed,
    parse_range,
    parse_time_of_day,
    read_duration,
)
from kubetide.units.names import dns1123_label_errors, label_key_errors, label_value_errors
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import hours, parse_rfc3339

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WITHOUT_GROUP = ("api-error", "watch-expiry")
_DAY = hours(24)
_GAPS = ("error", "hold")
_UNITS = ("requests/s", "requests/step")


def check_scenario(path: Path, document: Document, scenario: Scenario) -> None:
    """Raises ScenarioError with a line for each problem, naming file, line, field and fix."""
    check = _Checker(path, document)
    check.that(bool(scenario.name.strip()), "name", "empty; give the scenario a name")
    check.parses(parse_rfc3339, scenario.start, "start")
    check.duration(scenario.duration, "duration", least=1)
    check.duration(scenario.step, "step", least=1)
    duration, step = _ns(scenario.duration), _ns(scenario.step)
    check.that(
        duration is None or step is None or step <= duration or duration <= 0,
        "step",
        f"{scenario.step} is longer than the run, {scenario.duration}; lower it",
    )
    check.duration(scenario.warm_up, "warmUp")
    for field in ("image_pull", "start", "ready", "stop"):
        check.parses(parse_range, getattr(scenario.pods, field), f"pods.{json_name(field)}")
    _check_instance_types(check, scenario)
    _check_groups(check, scenario)
    manifests = _check_manifests(check, scenario, path.parent)
    _check_services(check, scenario, manifests, path.parent)
    _check_flags(check, scenario)
    for index, fault in enumerate(scenario.faults):
        _check_fault(check, scenario, fault, f"faults[{index}]")
    _check_show(check, scenario)
    check.finish()


class _Checker:
    """Collects what is wrong, so that one look mends all."""

    def __init__(self, path: Path, document: Document) -> None:
        self._path = path
        self._document = document
        self._names: dict[str, str] = {}
        self._errors: list[str] = []

    def name(self, field: str, name: str) -> None:
        """Lets the messages about an entry of a list say its name."""
        self._names[field] = name

    def that(self, holds: bool, field: str, problem: str) -> None:
        if not holds:
            line = self._document.line_of(field)
            for entry, name in self._names.items():
                if field.startswith(entry):
                    field = f"{entry} ({name}){field[len(entry) :]}"
            self._errors.append(f"{self._path} line {line}: {field}: {problem}")

    def parses(self, parse: Callable[[Any], Any], value: Any, field: str) -> None:
        try:
            parse(value)
        except (ValueError, QuantityError) as error:
            self.that(False, field, str(error))

    def duration(self, text: str, field: str, *, least: int = 0) -> None:
        """A duration of at least so many nanoseconds."""
        self.parses(read_duration, text, field)
        duration = _ns(text)
        self.that(
            duration is None or duration >= least,
            field,
            f"{text!r} must be {'greater than 0' if least else '0 or more'}",
        )

    def quantity(self, value: str | int, field: str, *, positive: bool = False) -> None:
        """A quantity, 0 or more, or greater than 0."""
        try:
            milli = Quantity.parse(value).exact_milli()
        except QuantityError:
            self.that(False, field, f"{value!r} is not a quantity such as 500m, 2 or 4Gi{_meant(value)}")
            return
        holds = milli > 0 if positive else milli >= 0
        self.that(holds, field, f"{value!r} must be {'greater than 0' if positive else '0 or more'}")

    def fits(self, errors: tuple[str, ...], field: str, text: str) -> None:
        """A name or label without errors."""
        self.that(not errors, field, f"{text!r}: {'; '.join(errors)}")

    def one_of(self, value: str, known: tuple[str, ...], field: str, what: str) -> None:
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
        self.that(value in known, field, f"unknown {what} `{value}`; {hint}")

    def told(self, text: str) -> None:
        """Takes a message that names its place already."""
        self._errors.append(text)

    def line_of(self, field: str) -> int:
        return self._document.line_of(field)

    @property
    def count(self) -> int:
        """Problems found so far."""
        return len(self._errors)

    @property
    def path(self) -> Path:
        return self._path

    def finish(self) -> None:
        if self._errors:
            raise ScenarioError("\n".join(self._errors))


def _meant(value: str | int) -> str:
    """What a quantity with a B for bytes is meant to be; Kubernetes writes none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMGTPE])i?[bB]", str(value), re.ASCII)
    if not match:
        return ""
    number, unit = match[1], match[2].upper()
    return f"; did you mean {number}{'k' if unit == 'K' else unit} or {number}{unit}i?"


def _ns(text: str) -> int | None:
    try:
        return read_duration(text)
    except ValueError:
        return None


def _check_instance_types(check: _Checker, scenario: Scenario) -> None:
    for name, kind in scenario.instance_types.items():
        where = f"instanceTypes[{name}]"
        before = check.count
        check.quantity(kind.cpu, f"{where}.cpu", positive=True)
        check.quantity(kind.memory, f"{where}.memory", positive=True)
        if kind.actual_memory is not None:
            check.quantity(kind.actual_memory, f"{where}.actualMemory", positive=True)
        check.quantity(kind.reserved_cpu, f"{where}.reservedCpu")
        check.quantity(kind.reserved_memory, f"{where}.reservedMemory")
        check.that(kind.pods > 0, f"{where}.pods", f"{kind.pods} must be greater than 0")
        check.that(kind.gpu >= 0, f"{where}.gpu", f"{kind.gpu} must be 0 or more")
        check.that(
            kind.price_per_hour >= 0, f"{where}.pricePerHour", f"{kind.price_per_hour} must be 0 or more"
        )
        if check.count == before:
            check.parses(functools.partial(instance_type_of, name), kind, where)


def _check_groups(check: _Checker, scenario: Scenario) -> None:
    known = {*CATALOGUE, *scenario.instance_types}
    seen: set[str] = set()
    check.that(bool(scenario.node_groups), "nodeGroups", "empty; a cluster needs at least one node group")
    for index, group in enumerate(scenario.node_groups):
        where = f"nodeGroups[{index}]"
        check.name(where, group.name)
        twice = group.name in seen
        seen.add(group.name)
        check.that(not twice, f"{where}.name", f"{group.name} stands twice; give each group its own name")
        check.that(
            group.instance_type in known,
            f"{where}.instanceType",
            no_instance_type(group.instance_type, scenario.instance_types),
        )
        _check_names(check, group, where)
        _check_sizes(check, group, where)
        check.parses(parse_range, group.boot_time, f"{where}.bootTime")
        price = group.price_per_hour
        check.that(price is None or price >= 0, f"{where}.pricePerHour", f"{price} must be 0 or more")
        for number, taint in enumerate(group.taints):
            check.one_of(taint.effect, _EFFECTS, f"{where}.taints[{number}].effect", "effect")


def _check_names(check: _Checker, group: NodeGroupSpec, where: str) -> None:
    """Names become parts of node names and values of labels, so the API server's rules hold for them."""
    check.fits(dns1123_label_errors(group.name), f"{where}.name", group.name)
    check.fits(label_value_errors(group.zone), f"{where}.zone", group.zone)
    for key, value in group.labels.items():
        check.fits(label_key_errors(key), f"{where}.labels[{key}]", key)
        check.fits(label_value_errors(value), f"{where}.labels[{key}]", value)
    for number, taint in enumerate(group.taints):
        check.fits(label_key_errors(taint.key), f"{where}.taints[{number}].key", taint.key)
        check.fits(label_value_errors(taint.value), f"{where}.taints[{number}].value", taint.value)


def _check_sizes(check: _Checker, group: NodeGroupSpec, where: str) -> None:
    check.that(group.min >= 0, f"{where}.min", f"{group.min} is negative; the least is 0")
    check.that(
        group.min <= group.max,
        f"{where}.min",
        f"min {group.min} is greater than max {group.max}; lower min or raise max",
    )
    if group.initial is not None and group.min <= group.max:
        check.that(
            group.min <= group.initial <= group.max,
            f"{where}.initial",
            f"{group.initial} is not between min {group.min} and max {group.max}",
        )


def _check_manifests(check: _Checker, scenario: Scenario, base: Path) -> Manifests | None:
    """Gives the objects, or None where not all could be read."""
    found: Manifests = []
    whole = True
    for index, entry in enumerate(scenario.manifests):
        field = f"manifests[{index}]"
        try:
            # The text of a block begins on the line after its `|`.
            found += manifests_in(entry, field, base, within=(str(check.path), check.line_of(field)))
        except ScenarioError as error:
            whole = False
            check.told(str(error))
    if not whole:
        return None
    for name in twice_in(found):
        check.that(False, "manifests", f"{name} stands twice; give each object its own name")
    for name, problem in targets_missing(found):
        check.that(False, "manifests", f"HorizontalPodAutoscaler {name}: {problem}")
    return found


def _check_services(check: _Checker, scenario: Scenario, manifests: Manifests | None, base: Path) -> None:
    deployments = None if manifests is None else deployments_of(manifests)
    seen: set[tuple[str, str]] = set()
    for index, service in enumerate(scenario.services):
        where = f"services[{index}]"
        check.name(where, service.deployment)
        key = (service.namespace, service.deployment)
        check.that(
            key not in seen,
            f"{where}.deployment",
            f"{key[0]}/{key[1]} stands twice; a Deployment has one load",
        )
        seen.add(key)
        if deployments is not None:
            check.that(key in deployments, f"{where}.deployment", no_deployment(service, deployments))
        _check_service(check, service, where)
        _check_load(check, service.load, f"{where}.load", base)


def _check_service(check: _Checker, service: ServiceSpec, where: str) -> None:
    check.that(
        service.cpu_seconds_per_request > 0,
        f"{where}.cpuSecondsPerRequest",
        f"{service.cpu_seconds_per_request} must be greater than 0",
    )
    for field in ("base_cpu", "base_memory", "memory_per_request"):
        check.quantity(getattr(service, field), f"{where}.{json_name(field)}")
    check.duration(service.latency, f"{where}.latency")
    check.duration(service.max_queue, f"{where}.maxQueue")
    if service.slo_latency is not None:
        check.duration(service.slo_latency, f"{where}.sloLatency", least=1)


def _check_load(check: _Checker, load: LoadSpec, where: str, base: Path) -> None:
    check.that(
        (load.trace is None) != (load.daily is None),
        where,
        f"has {'neither' if load.trace is None else 'both'}; "
        "state either `trace` (a file) or `daily` (an invented day)",
    )
    check.that(load.multiplier > 0, f"{where}.multiplier", f"{load.multiplier} must be greater than 0")
    check.one_of(load.gaps, _GAPS, f"{where}.gaps", "treatment of gaps")
    check.one_of(load.unit, _UNITS, f"{where}.unit", "unit")
    if load.trace is not None:
        check.that(
            (base / load.trace).is_file(),
            f"{where}.trace",
            f"there is no file {base / load.trace}; put it there or name one with --trace",
        )
    if load.step is not None:
        check.duration(load.step, f"{where}.step", least=1)
        check.that(
            (_ns(load.step) or 0) <= _DAY, f"{where}.step", f"{load.step} is longer than a day; lower it"
        )
    if load.window is not None:
        for number, text in enumerate(load.window):
            check.parses(parse_rfc3339, text, f"{where}.window[{number}]")
    if load.daily is not None:
        _check_daily(check, load.daily, f"{where}.daily")


def _check_daily(check: _Checker, daily: DailySpec, where: str) -> None:
    check.that(
        0 <= daily.low <= daily.peak,
        f"{where}.low",
        f"{daily.low} is not between 0 and peak {daily.peak}",
    )
    check.parses(parse_time_of_day, daily.peak_at, f"{where}.peakAt")
    check.that(daily.noise >= 0, f"{where}.noise", f"{daily.noise} must be 0 or more")
    if daily.burst is not None:
        check.parses(parse_time_of_day, daily.burst.at, f"{where}.burst.at")
        check.that(
            daily.burst.height > 0, f"{where}.burst.height", f"{daily.burst.height} must be greater than 0"
        )
        for field in ("rise", "hold", "fall"):
            check.duration(getattr(daily.burst, field), f"{where}.burst.{field}")


def _check_flags(check: _Checker, scenario: Scenario) -> None:
    for name, value in scenario.flags.items():
        try:
            parse_flags({name: value})
        except FlagError as error:
            check.that(False, f"flags[{name}]", str(error))


def _check_fault(check: _Checker, scenario: Scenario, fault: FaultSpec, where: str) -> None:
    check.one_of(fault.kind, FAULT_KINDS, f"{where}.kind", "fault")
    names = [group.name for group in scenario.node_groups]
    check.that(
        not names or fault.group in {"", *names},
        f"{where}.group",
        f"no node group `{fault.group}`; there are {', '.join(names)}",
    )
    check.that(
        not fault.group or fault.kind not in _WITHOUT_GROUP,
        f"{where}.group",
        f"{fault.kind} is about the API server and not about a node group; leave the group out",
    )
    check.that(0 < fault.probability <= 1, f"{where}.probability", f"{fault.probability} is not in (0, 1]")
    check.duration(fault.start, f"{where}.start")
    begins, ends = _ns(fault.start), _ns(scenario.duration)
    check.that(
        begins is None or ends is None or begins < ends or ends <= 0,
        f"{where}.start",
        f"{fault.start} is not before the end of the run, {scenario.duration}; lower it",
    )
    if fault.end is not None:
        start, end = _ns(fault.start), _ns(fault.end)
        check.duration(fault.end, f"{where}.end")
        check.that(
            start is None or end is None or start < end,
            f"{where}.end",
            f"{fault.end} is not after start {fault.start}; move one of them",
        )


def _check_show(check: _Checker, scenario: Scenario) -> None:
    show = scenario.show
    if show.start is not None:
        check.parses(parse_rfc3339, show.start, "show.start")
    if show.until is not None:
        check.parses(parse_rfc3339, show.until, "show.until")
    check.that(
        is_speed(show.speed),
        "show.speed",
        f"{show.speed:g} must be greater than 0 and at most {MOST_SPEED:,}",
    )
