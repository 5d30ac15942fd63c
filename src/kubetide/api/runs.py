"""Whole runs: played now, or read from the folder of an earlier one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubetide.experiments.changes import with_changes
from kubetide.runtime.recording.folder import TIMELINE
from kubetide.runtime.recording.records import RecordError, read_records, recorded_loops
from kubetide.simulate.answers.when import read_moment, start_of_records
from kubetide.simulate.answers.why import explain_object
from kubetide.simulate.outcome.marks import marks_of
from kubetide.simulate.outcome.summary import Summary, summarize
from kubetide.simulate.outcome.timeline import Mark, Timeline
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.simulate.scenarios.shipped import scenario_path
from kubetide.units.time import Instant, after, format_rfc3339, seconds

Columns = dict[str, list[Any]]
"""A table, column by column: what ``pandas.DataFrame`` and ``polars.DataFrame`` take."""


class Run(msgspec.Struct, frozen=True):
    """A finished run: its summary, and its course step by step."""

    summary: Summary
    timeline: Timeline

    def steps(self) -> Columns:
        """Return what happened, a row a sampling step: time, pending pods, cost so far, nodes of each group, and of each service
        its load and pods, as ``web.ready``.
        """
        line = self.timeline
        table: Columns = {
            "time": [
                _text(after(line.start, seconds(step * line.step_s))) for step in range(len(line.pending))
            ],
            "pending": line.pending,
            "cost": line.cost,
            "cpu_requested": line.cpu_requested,
            "cpu_used": line.cpu_used,
            "cpu_allocatable": line.cpu_allocatable,
        }
        table |= {f"nodes.{group}": list(counts) for group, counts in line.nodes.items()}
        for name, series in line.services.items():
            columns = {
                field: one for field, one in msgspec.structs.asdict(series).items() if isinstance(one, list)
            }
            table |= {f"{name}.{field}": column for field, column in columns.items()}
        return table

    def services(self) -> Columns:
        """Return the summary of the services, a row each."""
        return _columns([msgspec.structs.asdict(one) for one in self.summary.services])

    def decisions(self) -> Columns:
        """Return every decision, a row each, with its reasons."""
        return _decisions(self.timeline.marks)


def run_scenario(
    scenario: str | Path,
    *,
    seed: int = 1,
    changes: Sequence[str] = (),
    patches: Sequence[str | Path] = (),
    out: str | Path | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Run:
    """Run a scenario in virtual time and return its result.

    Args:
        scenario: A file, or the name of a shipped example.
        changes: As of ``kubetide what-if --set``, such as ``"hpa/web.target=75"``.
        patches: Files, as of ``--patch``.
        out: Where the decision records go; without it none are written.
        warn: Takes a sentence for what the run leaves out.

    Raises: ScenarioError, FlagError, TraceError, RecordError.
    """
    path = scenario_path(Path(scenario))
    loaded = load_scenario(path)
    if changes or patches:
        loaded = with_changes(path, loaded, sets=changes, patches=[Path(one) for one in patches])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if out is None else out)
        result = run_simulation(loaded, base=path.parent, out=folder, seed=seed, warn=warn)
    return Run(result.summary, result.timeline)


def read_run(folder: str | Path) -> Run:
    """Return the run of ``kubetide simulate`` or ``up`` in a folder. Raises RecordError."""
    path = Path(folder) / TIMELINE
    try:
        timeline = msgspec.json.decode(path.read_bytes(), type=Timeline)
    except (OSError, msgspec.DecodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}; name the folder of a run that is over") from error
    return Run(summarize(Path(folder).name, timeline), timeline)


def decisions(folder: str | Path) -> Columns:
    """Return every decision of a records folder, also of a running run, one row each. Raises RecordError."""
    return _decisions(sorted(_marks(Path(folder)), key=lambda mark: mark.at))


def why(folder: str | Path, kind: str, name: str, *, at: str = "") -> str:
    """Return the answer of ``kubetide explain KIND NAME``; the name may include its namespace, ``shop/cart``.

    Args:
        at: A time, a time of day or a duration from the start; the end of the records without it.

    Raises: RecordError, WhyError; ValueError for a time that is none.
    """
    path = Path(folder)
    namespace, slash, own = name.rpartition("/")
    moment = read_moment(at, start_of_records(path)) if at else None
    return explain_object(path, kind, own if slash else name, namespace=namespace or "default", at=moment)


def _marks(folder: Path) -> Iterator[Mark]:
    for loop in recorded_loops(folder):
        for record in read_records(folder, loop):
            yield from marks_of(record)


def _decisions(marks: Sequence[Mark]) -> Columns:
    return {
        "time": [_text(mark.at) for mark in marks],
        "loop": [mark.loop for mark in marks],
        "subject": [mark.subject for mark in marks],
        "decision": [mark.title for mark in marks],
        "change": [mark.change for mark in marks],
        "why": [list(mark.why) for mark in marks],
    }


def _columns(rows: Sequence[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _text(at: Instant) -> str:
    return format_rfc3339(at)
