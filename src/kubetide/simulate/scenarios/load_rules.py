"""Checks of a scenario's services, external metrics, and their load."""

from __future__ import annotations

from pathlib import Path

from kubetide.objects.base import json_name
from kubetide.simulate.scenarios.build import Deployments, Manifests, deployments_of, no_deployment
from kubetide.simulate.scenarios.problems import Checker, nanoseconds
from kubetide.simulate.scenarios.spec import DailySpec, LoadSpec, Scenario, ServiceSpec, parse_time_of_day
from kubetide.units.names import dns1123_label_errors, label_key_errors, label_value_errors
from kubetide.units.time import hours, parse_rfc3339

_DAY = hours(24)
_GAPS = ("error", "hold")
_UNITS = ("requests/s", "requests/step")


def check_services(check: Checker, scenario: Scenario, manifests: Manifests | None, base: Path) -> None:
    """Check the services; ``manifests`` is None if not all could be read."""
    deployments = None if manifests is None else deployments_of(manifests)
    seen: set[tuple[str, str]] = set()
    for index, service in enumerate(scenario.services):
        where = f"services[{index}]"
        check.name(where, service.title)
        _check_workload(check, service, deployments, where)
        key = (service.namespace, service.title)
        field = f"{where}.{'name' if service.selector else 'deployment'}"
        check.that(key not in seen, field, f"{key[0]}/{key[1]} stands twice; a workload has one load")
        seen.add(key)
        _check_service(check, service, where)
        _check_rollouts(check, scenario, service, where)
        _check_load(check, service.load, f"{where}.load", base)


def _check_workload(
    check: Checker, service: ServiceSpec, deployments: Deployments | None, where: str
) -> None:
    """A service states either a Deployment that is there, or labels and a name of its own."""
    if service.selector and service.deployment:
        said = "has both; state either `deployment` (its name) or `selector` (labels of the pods)"
        check.that(False, where, said)
    elif service.selector:
        check.that(bool(service.name), where, "`name` is missing; a service with a `selector` needs one")
        for key, value in service.selector.items():
            check.fits(label_key_errors(key), f"{where}.selector[{key}]", key)
            check.fits(label_value_errors(value), f"{where}.selector[{key}]", value)
    elif not service.deployment:
        said = "has neither; state either `deployment` (its name) or `selector` (labels of the pods)"
        check.that(False, where, said)
    else:
        check.that(
            not service.name, f"{where}.name", "a service of a Deployment bears its name; leave this out"
        )
        there = deployments is None or (service.namespace, service.deployment) in deployments
        check.that(there, f"{where}.deployment", no_deployment(service, deployments or {}))


def _check_service(check: Checker, service: ServiceSpec, where: str) -> None:
    check.number(service.cpu_seconds_per_request, f"{where}.cpuSecondsPerRequest", positive=True)
    for field in ("base_cpu", "base_memory", "memory_per_request", "leak_per_hour"):
        check.quantity(getattr(service, field), f"{where}.{json_name(field)}")
    check.duration(service.latency, f"{where}.latency")
    check.duration(service.max_queue, f"{where}.maxQueue")
    if service.slo_latency is not None:
        check.duration(service.slo_latency, f"{where}.sloLatency", least=1)


def _check_rollouts(check: Checker, scenario: Scenario, service: ServiceSpec, where: str) -> None:
    """Find what is wrong with the start of a service's containers and with its new images."""
    if service.startup is not None:
        check.number(service.startup.cpu_seconds, f"{where}.startup.cpuSeconds", positive=True)
        check.quantity(service.startup.cpu, f"{where}.startup.cpu", positive=True)
    for number, rollout in enumerate(service.rollouts):
        field = f"{where}.rollouts[{number}]"
        said = "a rollout changes a Deployment; name it under `deployment` instead of a `selector`"
        check.that(bool(service.deployment), field, said)
        check.duration(rollout.at, f"{field}.at")
        at, end = nanoseconds(rollout.at), nanoseconds(scenario.duration)
        late = f"{rollout.at} is not before the end of the run, {scenario.duration}; lower it"
        check.that(at is None or end is None or at < end, f"{field}.at", late)
        check.that(bool(rollout.image), f"{field}.image", "empty; name the new image, such as web:2")
        for name in ("base_memory", "leak_per_hour"):
            if (value := getattr(rollout, name)) is not None:
                check.quantity(value, f"{field}.{json_name(name)}")


def check_external_metrics(check: Checker, scenario: Scenario, base: Path) -> None:
    """Check the series of external metrics."""
    seen: set[tuple[object, ...]] = set()
    for index, series in enumerate(scenario.external_metrics):
        where = f"externalMetrics[{index}]"
        check.name(where, series.metric)
        check.that(
            bool(series.metric) and series.metric not in {".", ".."} and not {"/", "%"} & set(series.metric),
            f"{where}.metric",
            f"{series.metric!r} cannot stand in the path of a request; write a name without / and %",
        )
        for key, value in series.labels.items():
            check.fits(label_key_errors(key), f"{where}.labels[{key}]", key)
            check.fits(label_value_errors(value), f"{where}.labels[{key}]", value)
        if series.namespace is not None:
            check.fits(dns1123_label_errors(series.namespace), f"{where}.namespace", series.namespace)
        key_of_series = (series.metric, series.namespace, *sorted(series.labels.items()))
        check.that(
            key_of_series not in seen,
            where,
            "stands twice; tell two series of a metric apart by labels or namespace",
        )
        seen.add(key_of_series)
        check.that(
            series.load.unit == _UNITS[0],
            f"{where}.load.unit",
            "the values of an external metric are taken as they are; leave the unit out",
        )
        _check_load(check, series.load, f"{where}.load", base)


def _check_load(check: Checker, load: LoadSpec, where: str, base: Path) -> None:
    check.that(
        (load.trace is None) != (load.daily is None),
        where,
        f"has {'neither' if load.trace is None else 'both'}; "
        "state either `trace` (a file) or `daily` (an invented day)",
    )
    check.number(load.multiplier, f"{where}.multiplier", positive=True)
    check.one_of(load.gaps, _GAPS, f"{where}.gaps", "treatment of gaps")
    check.one_of(load.unit, _UNITS, f"{where}.unit", "unit")
    if load.trace is not None:
        check.that(
            (base / load.trace).is_file(),
            f"{where}.trace",
            f"there is no file {base / load.trace}; put it there or name one with --trace"
            f"{f'. It is to be had from {load.trace_from}' if load.trace_from else ''}",
        )
    if load.step is not None:
        check.duration(load.step, f"{where}.step", least=1)
        check.that(
            (nanoseconds(load.step) or 0) <= _DAY,
            f"{where}.step",
            f"{load.step} is longer than a day; lower it",
        )
    if load.window is not None:
        for number, text in enumerate(load.window):
            check.parses(parse_rfc3339, text, f"{where}.window[{number}]")
        check.parses(_in_order, load.window, f"{where}.window")
    if load.daily is not None:
        _check_daily(check, load.daily, f"{where}.daily")


def _check_daily(check: Checker, daily: DailySpec, where: str) -> None:
    check.that(
        0 <= daily.low <= daily.peak,
        f"{where}.low",
        f"{daily.low} is not between 0 and peak {daily.peak}",
    )
    check.number(daily.peak, f"{where}.peak")
    check.parses(parse_time_of_day, daily.peak_at, f"{where}.peakAt")
    check.number(daily.noise, f"{where}.noise")
    if daily.burst is not None:
        check.parses(parse_time_of_day, daily.burst.at, f"{where}.burst.at")
        check.number(daily.burst.height, f"{where}.burst.height", positive=True)
        for field in ("rise", "hold", "fall"):
            check.duration(getattr(daily.burst, field), f"{where}.burst.{field}")


def _in_order(window: tuple[str, str]) -> None:
    """Raise ValueError for a window that ends before it begins; what is no time is reported elsewhere."""
    try:
        begin, end = map(parse_rfc3339, window)
    except ValueError:
        return
    if end <= begin:
        raise ValueError(f"{window[1]} is not after {window[0]}; write the earlier time first")
