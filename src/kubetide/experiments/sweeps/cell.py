"""One cell of a sweep: a scenario that needs no file beside it, run on one seed, bytes in and bytes out.

The same bytes run in a process of this machine and on a worker of another.
"""

from __future__ import annotations

import gc
import tempfile
import threading
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kubetide import __version__
from kubetide.experiments.objects import Objects
from kubetide.experiments.sweeps.records import keep_records
from kubetide.ports.errors import KubetideError
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.scenario import LoadSpec, Scenario, ScenarioError

_Loaded = TypeVar("_Loaded", bound=msgspec.Struct)

_one_run = threading.Lock()
"""Runs of one process follow each other: the filters in use are the process's."""


class Task(msgspec.Struct, frozen=True):
    """The input of a cell.

    Attributes:
        version: Of kubetide: another one decides differently.
        files: What the scenario names beside itself, by that name.
        records: Where the run's records go, a folder or a URL; empty for nowhere, which is faster.
    """

    version: str
    scenario: Scenario
    files: dict[str, bytes]
    seed: int
    records: str = ""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a cell: a summary, or its error as a sentence."""

    summary: Summary | None = None
    error: str = ""


class Interrupted(KeyboardInterrupt):
    """A cell was ended before its run was over."""


def task_of(scenario: Scenario, base: Path, seed: int) -> Task:
    """Return a task with a scenario and all files that it reads.

    Args:
        base: The folder that the scenario's files lie beside.
    Raises: ScenarioError where a file cannot be read.
    """
    files: dict[str, bytes] = {}

    def inside(load: LoadSpec) -> LoadSpec:
        if load.trace is None:
            return load
        path = base / load.trace
        # The name says how the file is to be read: .csv, .gz.
        name = f"{len(files)}-{path.name}"
        try:
            files[name] = path.read_bytes()
        except OSError as error:
            raise ScenarioError(f"{path}: cannot be read: {error.strerror}; check the path") from error
        return msgspec.structs.replace(load, trace=name)

    def loaded(parts: tuple[_Loaded, ...]) -> tuple[_Loaded, ...]:
        return tuple(_with_load(part, inside) for part in parts)

    portable = msgspec.structs.replace(
        scenario,
        catalog="",
        manifests=tuple(Objects(manifests_of(scenario, base)).texts()),
        services=loaded(scenario.services),
        external_metrics=loaded(scenario.external_metrics),
    )
    return Task(__version__, portable, files, seed)


def _with_load(part: _Loaded, change: Any) -> _Loaded:
    return msgspec.structs.replace(part, load=change(part.load))  # type: ignore[attr-defined]


def run_cell(task: bytes) -> bytes:
    """Run one cell and return its outcome; errors of the cell are part of the outcome.

    Raises: Interrupted.
    """
    return msgspec.json.encode(_outcome(task))


def _outcome(encoded: bytes) -> Outcome:
    try:
        task = msgspec.json.decode(encoded, type=Task)
    except msgspec.DecodeError as error:
        return Outcome(error=f"this worker (kubetide {__version__}) cannot read the task: {error}")
    if task.version != __version__:
        return Outcome(error=other_version(__version__, task.version))
    with _one_run, tempfile.TemporaryDirectory(prefix="kubetide-cell-") as made:
        folder = Path(made)
        for name, content in task.files.items():
            (folder / name).write_bytes(content)
        try:
            out = folder / "run" if task.records else None
            result = run_simulation(task.scenario, base=folder, out=out, seed=task.seed, warn=lambda _: None)
            if out is not None:
                keep_records(out, task.records)
        except KubetideError as error:
            return Outcome(error=str(error))
        except Exception as error:  # noqa: BLE001  one cell that fails is named, and the others go on
            return Outcome(error=f"{type(error).__name__}: {error}")
        finally:
            # A run freezes what is there when it begins; of many runs that would stay for ever.
            gc.unfreeze()
            gc.collect()
    if result.interrupted:
        raise Interrupted
    if result.violations:
        return Outcome(error=f"an invariant is broken: {result.violations[0]}")
    return Outcome(summary=result.summary)


def other_version(worker: str, own: str) -> str:
    """Return the message about a worker that runs another version of kubetide."""
    return (
        f"the worker has kubetide {worker}, and this is kubetide {own}: "
        "install the same version on both, since another one decides differently"
    )
