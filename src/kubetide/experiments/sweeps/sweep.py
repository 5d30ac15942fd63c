"""Runs the cells of a sweep that are not finished, and stores the outcome of each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from kubetide.experiments.sweeps.cell import Outcome, Task, task_of
from kubetide.experiments.sweeps.grid import Variant
from kubetide.ports.errors import KubetideError
from kubetide.runtime.recording.folder import write_bytes_whole
from kubetide.simulate.scenarios.scenario import ScenarioError


class SweepError(KubetideError):
    """A sweep that cannot continue; the text gives the reason and the fix."""


class Workers(Protocol):
    """Runs cells somewhere: in processes of this machine, on a cluster."""

    def run(self, tasks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each task and its outcome as of ``run_cell``, in any order."""


class Cell(msgspec.Struct, frozen=True):
    """One run of a sweep: a combination of values on one seed, and its outcome."""

    values: tuple[str, ...]
    seed: int
    outcome: Outcome


class Store:
    """Outcomes of cells in a folder, one file each, named by a hash of the cell's input."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.json"))

    def get(self, key: str) -> Outcome | None:
        """Return the outcome of a cell, or None if it is unknown or unreadable."""
        try:
            return msgspec.json.decode((self._folder / f"{key}.json").read_bytes(), type=Outcome)
        except (OSError, msgspec.DecodeError):
            return None

    def put(self, key: str, outcome: bytes) -> None:
        """Store the outcome of a cell. Raises SweepError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_bytes_whole(self._folder / f"{key}.json", outcome)
        except OSError as error:
            raise SweepError(
                f"cannot write under {self._folder}: {error.strerror}; free space there, and go on with --resume"
            ) from error


def key_of(task: Task) -> str:
    """Return the key of a cell: equal for the same scenario, files, seed and version, wherever its records go."""
    task = msgspec.structs.replace(task, records="")
    return hashlib.sha256(msgspec.json.encode(task, order="sorted")).hexdigest()[:32]


def run_sweep(
    found: Sequence[Variant],
    seeds: Sequence[int],
    *,
    base: Path,
    workers: Workers,
    store: Store,
    records: str = "",
    done: Callable[[], None] = lambda: None,
) -> list[Cell]:
    """Run every variant on every seed, and return the cells in that order, whatever runs them.

    Args:
        base: The folder that the scenario's files lie beside.
        store: Cells that it has are not run again; a cell that failed is.
        records: A folder or URL for the records of each cell that is run, under its name; empty for none.
        done: Called after each cell.
    """
    places = [(number, seed) for number in range(len(found)) for seed in seeds]
    outcomes: dict[int, Outcome] = {}
    given: list[tuple[int, str]] = []

    def ended(place: int, outcome: Outcome) -> None:
        outcomes[place] = outcome
        done()

    def tasks() -> Iterator[bytes]:
        made: tuple[int, Task | Outcome] | None = None
        for place, (number, seed) in enumerate(places):
            if made is None or made[0] != number:
                # Manifests and files are read once for all seeds.
                made = number, _task(found[number], base, seed)
            task = made[1]
            if isinstance(task, Outcome):
                ended(place, task)
                continue
            task = msgspec.structs.replace(task, seed=seed)
            key = key_of(task)
            stored = store.get(key)
            if stored is not None:
                ended(place, stored)
                continue
            given.append((place, key))
            if records:
                task = msgspec.structs.replace(task, records=f"{records.rstrip('/')}/{key}")
            yield msgspec.json.encode(task)

    for number, encoded in workers.run(tasks()):
        place, key = given[number]
        outcome = msgspec.json.decode(encoded, type=Outcome)
        if not outcome.error:
            store.put(key, encoded)
        ended(place, outcome)
    return [Cell(found[number].values, seed, outcomes[place]) for place, (number, seed) in enumerate(places)]


def _task(variant: Variant, base: Path, seed: int) -> Task | Outcome:
    """Return a variant as a task, or what is wrong with it."""
    if variant.scenario is None:
        return Outcome(error=variant.error)
    try:
        return task_of(variant.scenario, base, seed)
    except ScenarioError as error:
        return Outcome(error=str(error))
