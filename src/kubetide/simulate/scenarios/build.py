"""Builds the parts of the embedded world from a scenario."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kubetide.embedded.apiserver.manifests.manifest import CustomKinds, ManifestError, Problem, load_manifests
from kubetide.embedded.cloud import CloudFaults
from kubetide.embedded.cloud.faults import CallFailure, Window
from kubetide.embedded.kubelet import PodTimes
from kubetide.embedded.load import Burst, DailyTrace, ExternalSeries, Service, Trace, read_trace
from kubetide.objects.base import Json
from kubetide.objects.kinds import DEPLOYMENTS, Kind
from kubetide.objects.meta import LabelSelector
from kubetide.simulate.rollouts import needs_by_image
from kubetide.simulate.scenarios.dumps import without_made
from kubetide.simulate.scenarios.machines import between
from kubetide.simulate.scenarios.spec import (
    FaultSpec,
    LoadSpec,
    Scenario,
    ScenarioError,
    ServiceSpec,
    parse_time_of_day,
    start_of,
)
from kubetide.units.quantity import milli, whole
from kubetide.units.selectors import Selector
from kubetide.units.time import Duration, Instant, after, parse_duration, parse_rfc3339, to_seconds

Manifests = list[tuple[Kind[object], Json]]
Places = dict[tuple[str, str, str], str]
"""Where objects stand, by kind, namespace (``default`` where they have none) and name."""


def pod_times_of(scenario: Scenario) -> PodTimes:
    """Return the durations of the steps of a pod's life."""
    times = scenario.pods
    return PodTimes(
        pull=between(times.image_pull),
        start=between(times.start),
        ready=between(times.ready),
        stop=between(times.stop),
    )


def manifests_of(
    scenario: Scenario,
    base: Path,
    *,
    skipped: list[str] | None = None,
    notices: list[str] | None = None,
    places: Places | None = None,
) -> Manifests:
    """Return the objects of the scenario: each entry of ``manifests`` is YAML text or a path relative to the scenario.

    Args:
        skipped: Takes the kinds of the objects that no decision reads.
        notices: Takes what is to say of a dump of a cluster among them.
        places: Takes where each object stands, by kind, namespace and name: ``shop.yaml:12``.
    Raises: ScenarioError naming file or entry, object, field and fix.
    """
    found: Manifests = []
    custom: CustomKinds = {}
    lines: list[tuple[str, int]] = []
    for index, entry in enumerate(scenario.manifests):
        field = f"manifests[{index}]"
        found += manifests_in(entry, field, base, skipped=skipped, custom=custom, lines=lines)
    if places is not None:
        for (kind, json), (source, line) in zip(found, lines, strict=True):
            metadata = json["metadata"]
            key = (kind.kind, metadata.get("namespace") or "default", metadata.get("name") or "")
            places[key] = f"{source}:{line}"
    begun, said = without_made(found)
    if notices is not None:
        notices.extend(said)
    return begun


def manifests_in(
    entry: str,
    field: str,
    base: Path,
    *,
    within: tuple[str, int] | None = None,
    skipped: list[str] | None = None,
    custom: CustomKinds | None = None,
    lines: list[tuple[str, int]] | None = None,
) -> Manifests:
    """Return the objects of one entry of ``manifests``.

    Args:
        entry: YAML text, JSON, or a path beside the scenario (one line that is no JSON object).
        field: Where the entry stands, for messages.
        base: The folder that paths start from.
        within: File and line that the text is a block of, for messages that count lines there.
        skipped: Takes the kinds of the objects that no decision reads and that are passed over.
        custom: Kinds that definitions of earlier entries bring; takes those of this one.
        lines: Takes, for each object, its file (or ``field``) and line.
    Raises: ScenarioError, a line for each problem.
    """
    text, source = entry, field
    if "\n" not in entry and not entry.startswith("{"):
        path = base / entry
        source = str(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise ScenarioError(
                f"{field}: {path}: cannot be read: {error.strerror}; check the path"
            ) from error
        except UnicodeDecodeError as error:
            raise ScenarioError(
                f"{field}: {path}: not UTF-8 text (byte {error.start}); save it as UTF-8"
            ) from error
        within = None
    try:
        return load_manifests(
            text, source, skipped=[] if skipped is None else skipped, custom=custom, places=lines
        )
    except ManifestError as error:
        problems = error.problems
        if within is not None:
            file, above = within
            problems = tuple(
                dataclasses.replace(problem, source=file, line=problem.line + above) for problem in problems
            )
        raise ScenarioError("\n".join(_placed(field, problem) for problem in problems)) from error


def _placed(field: str, problem: Problem) -> str:
    # Text without a file has no lines that its author could look at; the object is named.
    if problem.source == field and problem.subject:
        return f"{field}: {problem.subject}: {problem.text}"
    return f"{field}: {problem}"


Deployments = Mapping[tuple[str, str], Json]


def deployments_of(manifests: Manifests) -> Deployments:
    """Return the Deployments among the objects, by namespace and name."""
    return {
        (json["metadata"].get("namespace") or "default", json["metadata"]["name"]): json
        for kind, json in manifests
        if kind.kind == DEPLOYMENTS.kind and "name" in json["metadata"]
    }


def no_deployment(service: ServiceSpec, deployments: Deployments) -> str:
    """Return the warning about a service whose Deployment is not among the manifests."""
    known = ", ".join(f"{namespace}/{name}" for namespace, name in sorted(deployments)) or "none"
    return f"no Deployment {service.namespace}/{service.deployment} in manifests; there are: {known}"


def services_of(
    scenario: Scenario, manifests: Manifests, base: Path, seed: int, end: Instant
) -> tuple[Service, ...]:
    """Return the services under load, each with its selector or its Deployment's. Raises ScenarioError, TraceError."""
    deployments = deployments_of(manifests)
    return tuple(_service(spec, deployments, scenario, base, seed, end) for spec in scenario.services)


def _service(
    spec: ServiceSpec,
    deployments: Deployments,
    scenario: Scenario,
    base: Path,
    seed: int,
    end: Instant,
) -> Service:
    trace = trace_of(spec.load, f"{spec.namespace}/{spec.title}", scenario, base, seed)
    trace.require(start_of(scenario), end)
    return Service(
        name=spec.title,
        namespace=spec.namespace,
        selector=Selector.from_object(_selector(spec, deployments)),
        trace=trace,
        cpu_seconds_per_request=spec.cpu_seconds_per_request,
        base_cpu_milli=milli(spec.base_cpu),
        base_memory_bytes=whole(spec.base_memory),
        memory_per_request_bytes=whole(spec.memory_per_request),
        base_latency_s=to_seconds(parse_duration(spec.latency)),
        max_queue_s=to_seconds(parse_duration(spec.max_queue)),
        slo_latency_s=None if spec.slo_latency is None else to_seconds(parse_duration(spec.slo_latency)),
        leak_bytes_per_hour=whole(spec.leak_per_hour),
        startup_cpu_seconds=0.0 if spec.startup is None else spec.startup.cpu_seconds,
        startup_cpu_milli=0.0 if spec.startup is None else milli(spec.startup.cpu),
        images=needs_by_image(spec),
    )


def external_series_of(scenario: Scenario, base: Path, seed: int, end: Instant) -> tuple[ExternalSeries, ...]:
    """Return the series of external metrics. Raises TraceError."""
    found = []
    for spec in scenario.external_metrics:
        # The name is what noise is drawn from, so two series differ.
        labels = ",".join(f"{key}={value}" for key, value in sorted(spec.labels.items()))
        name = f"{spec.namespace or ''}/{spec.metric}{{{labels}}}"
        trace = trace_of(spec.load, name, scenario, base, seed)
        trace.require(start_of(scenario), end)
        found.append(
            ExternalSeries(
                metric=spec.metric, trace=trace, labels=dict(spec.labels), namespace=spec.namespace or ""
            )
        )
    return tuple(found)


def _selector(spec: ServiceSpec, deployments: Deployments) -> LabelSelector:
    if spec.selector:
        return LabelSelector(match_labels=spec.selector)
    deployment = deployments.get((spec.namespace, spec.deployment))
    if deployment is None:
        raise ScenarioError(f"services ({spec.deployment}).deployment: {no_deployment(spec, deployments)}")
    return msgspec.convert(deployment["spec"].get("selector") or {}, LabelSelector)


def trace_of(load: LoadSpec, name: str, scenario: Scenario, base: Path, seed: int) -> Trace:
    """Return the trace of a service or of a series. Raises TraceError."""
    if load.daily is not None:
        daily = load.daily
        burst = None
        if daily.burst is not None:
            burst = Burst(
                at=parse_time_of_day(daily.burst.at),
                height=daily.burst.height,
                rise=parse_duration(daily.burst.rise),
                hold=parse_duration(daily.burst.hold),
                fall=parse_duration(daily.burst.fall),
            )
        return DailyTrace(
            low=daily.low * load.multiplier,
            peak=daily.peak * load.multiplier,
            peak_at=parse_time_of_day(daily.peak_at),
            noise=daily.noise,
            burst=burst,
            seed=seed,
            name=name,
        )
    assert load.trace is not None, "checked when the scenario was read"
    window = load.window and (parse_rfc3339(load.window[0]), parse_rfc3339(load.window[1]))
    return read_trace(
        base / load.trace,
        unit=load.unit,
        step=None if load.step is None else parse_duration(load.step),
        window=window,
        start=start_of(scenario),
        column=load.column,
        gaps=load.gaps,
        multiplier=load.multiplier,
    )


def cloud_faults_of(scenario: Scenario) -> CloudFaults:
    """Return the faults of the cloud."""
    return CloudFaults(
        stock_outs=_windows(scenario, "stock-out"),
        boot_failures=_windows(scenario, "boot-failure"),
        call_failures=tuple(CallFailure(window) for window in _windows(scenario, "cloud-error")),
    )


def _windows(scenario: Scenario, kind: str) -> tuple[Window, ...]:
    return tuple(
        Window(
            start=fault_start(scenario, fault),
            end=fault_end(scenario, fault),
            group=fault.group,
            probability=fault.probability,
        )
        for fault in faults_of(scenario, kind)
    )


def faults_of(scenario: Scenario, kind: str) -> Sequence[FaultSpec]:
    """Return the faults of one kind, in the scenario's order."""
    return [fault for fault in scenario.faults if fault.kind == kind]


def fault_start(scenario: Scenario, fault: FaultSpec) -> Instant:
    """Return when a fault begins."""
    return after(start_of(scenario), parse_duration(fault.start))


def fault_end(scenario: Scenario, fault: FaultSpec) -> Instant | None:
    """Return when a fault ends; None if it stays."""
    if fault.end is None:
        return None
    return after(start_of(scenario), Duration(parse_duration(fault.end)))
