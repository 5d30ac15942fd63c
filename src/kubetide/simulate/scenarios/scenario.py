"""Loads a scenario file and reports all of its problems at once."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kubetide.clouds.catalog import CatalogError
from kubetide.objects.yaml_reading import Document, YamlError, read_documents
from kubetide.runtime.timing.clock import machine_time
from kubetide.simulate.scenarios.catalog import with_catalog_types
from kubetide.simulate.scenarios.rules import check_scenario
from kubetide.simulate.scenarios.spec import (
    FAULT_KINDS,
    BurstSpec,
    DailySpec,
    DurationRange,
    ExternalMetricSpec,
    FaultSpec,
    InstanceTypeSpec,
    LoadSpec,
    NodeGroupSpec,
    PodTimes,
    Scenario,
    ScenarioError,
    ServiceSpec,
    ShowSpec,
    TaintSpec,
    parse_range,
    parse_time_of_day,
    start_of,
)
from kubetide.simulate.scenarios.structure import structure_problems
from kubetide.units.time import Instant, TimeFormatError, after, format_rfc3339, parse_duration

NOW = "now"
"""As ``start``: when the scenario is read, and its warm-up after that is over."""

__all__ = [
    "FAULT_KINDS",
    "NOW",
    "BurstSpec",
    "DailySpec",
    "DurationRange",
    "ExternalMetricSpec",
    "FaultSpec",
    "InstanceTypeSpec",
    "LoadSpec",
    "NodeGroupSpec",
    "PodTimes",
    "Scenario",
    "ScenarioError",
    "ServiceSpec",
    "ShowSpec",
    "TaintSpec",
    "load_scenario",
    "load_unchecked",
    "parse_range",
    "parse_time_of_day",
    "start_of",
]


def load_scenario(path: Path, *, trace: Path | None = None) -> Scenario:
    """Return a checked scenario file, with the manifests that it names; traces are read when it runs.

    A ``start`` of ``now`` becomes the machine's time once the warm-up is over, so that at the speed of real time the
    cluster's clock is the machine's.

    Args:
        path: The YAML file; what it names lies beside it.
        trace: A trace that takes the place of the load of the first service.
    Raises: ScenarioError with a line for each problem, naming file, line, field and fix.
    """
    document, scenario = _read(path)
    if scenario.start == NOW:
        scenario = msgspec.structs.replace(scenario, start=format_rfc3339(_after_warm_up(scenario)))
    if trace is not None:
        scenario = _with_trace(path, scenario, trace)
    try:
        scenario = with_catalog_types(path.parent, scenario)
    except CatalogError as error:
        raise ScenarioError(f"{path} line {document.line_of('catalog')}: catalog: {error}") from error
    check_scenario(path, document, scenario)
    return scenario


def _after_warm_up(scenario: Scenario) -> Instant:
    try:
        return after(machine_time(), parse_duration(scenario.warm_up))
    except TimeFormatError:
        return machine_time()  # the check of the scenario names the field


def load_unchecked(path: Path) -> Scenario:
    """Return a scenario file without checking its content. Raises ScenarioError for an invalid structure."""
    return _read(path)[1]


def _read(path: Path) -> tuple[Document, Scenario]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    document = _document(path, text)
    return document, _convert(path, document)


def _document(path: Path, text: str) -> Document:
    try:
        documents = list(read_documents(text))
    except YamlError as error:
        raise ScenarioError(f"{path} line {error.line}: not valid YAML: {error.detail}") from error
    if len(documents) > 1:
        raise ScenarioError(
            f"{path} line {documents[1].line}: a second document begins; a scenario is one: "
            "put manifests under `manifests`"
        )
    if not documents or not isinstance(documents[0].value, dict):
        raise ScenarioError(
            f"{path}: a scenario is one YAML mapping with `name`, `nodeGroups`, `services` ...; this is not one"
        )
    if "kind" in documents[0].value and "apiVersion" in documents[0].value:
        raise ScenarioError(
            f"{path}: this is a Kubernetes {documents[0].value['kind']} and no scenario: name the file under `manifests` "
            "of one; `kubetide examples bad-day` copies one to begin with"
        )
    return documents[0]


def _convert(path: Path, document: Document) -> Scenario:
    lines = [
        f"{path} line {document.line_of(field)}: {shown or 'the top level'}: {text}"
        for field, shown, text in structure_problems(document.value)
    ]
    if lines:
        raise ScenarioError("\n".join(lines))
    try:
        return msgspec.convert(document.value, Scenario, strict=True)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {error}") from error


def _with_trace(path: Path, scenario: Scenario, trace: Path) -> Scenario:
    if not scenario.services:
        raise ScenarioError(f"{path}: services: empty, so a trace has nothing to drive; add a service")
    if not trace.is_file():
        raise ScenarioError(f"--trace: there is no file {trace}; check the path")
    first, *others = scenario.services
    load = msgspec.structs.replace(first.load, trace=str(trace.resolve()), daily=None)
    return msgspec.structs.replace(scenario, services=(msgspec.structs.replace(first, load=load), *others))
