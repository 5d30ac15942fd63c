"""The file of a policy test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kubetide.experiments.changes import TIMES, with_changes
from kubetide.experiments.policies.expectations import (
    Expectation,
    ExpectationError,
    check_subject,
    read_expectation,
)
from kubetide.objects.base import json_name
from kubetide.objects.yaml_reading import Document, YamlError, read_documents
from kubetide.ports.errors import KubetideError
from kubetide.simulate.outcome.observe import shown_name
from kubetide.simulate.scenarios.scenario import FaultSpec, Scenario, load_scenario


class PolicyError(KubetideError):
    """A policy that cannot be tested; the text names file, line and fix."""


class _Spec(msgspec.Struct, frozen=True, rename=json_name, kw_only=True, forbid_unknown_fields=True):
    scenario: str
    expect: tuple[str, ...]
    given: dict[str, str | int | float | bool] = {}
    set: dict[str, str | int | float | bool] = {}
    patches: tuple[str, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
    seeds: tuple[int, ...] = (1,)


class Policy(msgspec.Struct, frozen=True):
    """A scenario with changes, and expectations.

    Attributes:
        path: Its file.
        base: The folder that the scenario's files lie beside.
        scenario: With what is given, and with the changes of the policy.
        baseline: With what is given alone: what ``baseline`` means in an expectation.
        seeds: Each is a run of its own, in which all must hold.
    """

    path: Path
    base: Path
    scenario: Scenario
    baseline: Scenario
    expectations: tuple[Expectation, ...]
    seeds: tuple[int, ...]


def policy_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files of the paths: a file itself, or all ``*.yaml`` and ``*.yml`` of a folder. Raises PolicyError."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted({*path.rglob("*.yaml"), *path.rglob("*.yml")})
            if not inside:
                raise PolicyError(
                    f"{path}: no *.yaml in this folder; name the folder or the files of your policies"
                )
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def load_policy(path: Path, scenario_path: Callable[[Path], Path]) -> Policy:
    """Return a policy with its scenario and its changes.

    Args:
        scenario_path: Returns the file of a scenario by what a policy says: a path, or the name of an example.
    Raises: PolicyError, ScenarioError.
    """
    document = _read(path)
    try:
        spec = msgspec.convert(document.value, _Spec, strict=True)
    except msgspec.ValidationError as error:
        raise PolicyError(
            f"{path}: {error}; a policy has scenario, expect, and where needed given, set, patches, faults, seeds"
        ) from error
    if not spec.expect:
        raise PolicyError(f"{path} line {document.line_of('expect')}: expect: empty; write what must hold")
    if not spec.seeds:
        raise PolicyError(f"{path} line {document.line_of('seeds')}: seeds: empty; write at least one")
    beside = path.parent / spec.scenario
    file = beside if beside.exists() else scenario_path(Path(spec.scenario))
    given = load_scenario(file)
    if spec.given or spec.faults:
        both = msgspec.structs.replace(given, faults=(*given.faults, *spec.faults))
        given = with_changes(file, both, sets=_sets(spec.given), patches=())
    expectations = _expectations(path, document, spec.expect, given)
    times = [name for name in TIMES if name in spec.set]
    if times and any(one.needs_baseline for one in expectations):
        raise PolicyError(
            f"{path} line {document.line_of('set')}: set: {times[0]}: the baseline would play another time, and cannot be "
            "compared; put it under `given`, which holds for both"
        )
    patches = [path.parent / patch for patch in spec.patches]
    return Policy(
        path=path,
        base=file.parent,
        scenario=with_changes(file, given, sets=_sets(spec.set), patches=patches),
        baseline=given,
        expectations=expectations,
        seeds=spec.seeds,
    )


def _read(path: Path) -> Document:
    try:
        documents = list(read_documents(path.read_bytes()))
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except YamlError as error:
        raise PolicyError(f"{path} line {error.line}: not valid YAML: {error.detail}") from error
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise PolicyError(f"{path}: a policy is one YAML mapping with `scenario` and `expect`")
    return documents[0]


def _sets(settings: Mapping[str, object]) -> list[str]:
    return [f"{name}={msgspec.json.encode(value).decode()}" for name, value in settings.items()]


def _expectations(
    path: Path, document: Document, texts: Sequence[str], scenario: Scenario
) -> tuple[Expectation, ...]:
    services = [shown_name(service.namespace, service.title) for service in scenario.services]
    groups = [group.name for group in scenario.node_groups]
    found, problems = [], []
    for index, text in enumerate(texts):
        try:
            expectation = read_expectation(text)
            check_subject(expectation, services, groups)
            found.append(expectation)
        except ExpectationError as error:
            problems.append(f"{path} line {document.line_of(f'expect[{index}]')}: {error}")
    if problems:
        raise PolicyError("\n".join(problems))
    return tuple(found)
