"""Replays a recorded run: the check that the cores are pure.

Every record says what a tick was given, what it decided and what came of it. Replay gives the same
to a fresh core and compares the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from kubetide.explain.records import Core, Record
from kubetide.loop import UnknownLoop, explaining, loop_names
from kubetide.runtime.recording.folder import is_running
from kubetide.runtime.recording.records import (
    Ending,
    Header,
    RecordError,
    ending,
    located_records,
    recorded_loops,
    segments,
)
from kubetide.simulate.answers.recorded_plugins import RecordedPlugins, recorded_plugins
from kubetide.units.time import Instant, format_rfc3339


class Difference(msgspec.Struct, frozen=True):
    """The first difference between replay and record: ``part`` is ``commands`` or ``result``."""

    loop: str
    tick: int
    phase: int
    part: str
    recorded: bytes
    decided: bytes

    def __str__(self) -> str:
        at = _first_difference(self.recorded, self.decided)
        around = slice(max(0, at - 60), at + 60)
        return (
            f"{self.loop} tick {self.tick} phase {self.phase}: {self.part} differ at byte {at}:\n"
            f"  recorded …{self.recorded[around].decode(errors='replace')}…\n"
            f"  decided  …{self.decided[around].decode(errors='replace')}…"
        )


class EarlyEnd(msgspec.Struct, frozen=True):
    """A loop whose records have no last line, because the run did not end cleanly.

    Attributes:
        tick, now: Of the last whole record; None where there is none.
        running: Whether the run is still going on.
        torn: Whether the last line is only a part of one, and nobody is writing the rest.
    """

    loop: str
    tick: int | None
    now: Instant | None
    running: bool
    torn: bool

    def __str__(self) -> str:
        last = "before the first" if self.now is None else f"at tick {self.tick}, {format_rfc3339(self.now)}"
        why = "the run is still going on" if self.running else "the run was cut"
        return f"{self.loop}: records end early, {last}: {why}{' within a line' if self.torn else ''}"


class ReplayResult(msgspec.Struct, frozen=True):
    """The number of replayed records by loop, and the first difference of each loop.

    ``notes`` names the plug-ins that are installed in another version than the recorded one.
    """

    records: dict[str, int]
    differences: tuple[Difference, ...]
    early_ends: tuple[EarlyEnd, ...] = ()
    notes: tuple[str, ...] = ()


def replay(folder: Path, *, progress: Callable[[int], None] = lambda _: None) -> ReplayResult:
    """Replay every record of a folder.

    Args:
        folder: Where a run keeps its records.
        progress: Hears of the bytes of each record that was decided, of ``bytes_of`` altogether.
    Raises: RecordError where it cannot be read, or where a plug-in that decided is not installed.
    """
    records: dict[str, int] = {}
    differences: list[Difference] = []
    early: list[EarlyEnd] = []
    notes: dict[str, None] = {}
    for loop in recorded_loops(folder):
        # Asked before reading: a run that ends meanwhile is read to where it was, or further.
        running, how = is_running(folder), ending(folder, loop)
        with recorded_plugins() as plugins:
            count, last, difference = _replay_loop(folder, loop, plugins, progress)
        notes |= plugins.notes
        records[loop] = count
        if difference is not None:
            differences.append(difference)
        elif how is not Ending.WHOLE:
            early.append(
                EarlyEnd(
                    loop=loop,
                    tick=None if last is None else last.tick,
                    now=None if last is None else last.now,
                    running=running,
                    torn=how is Ending.TORN and not running,
                )
            )
    return ReplayResult(records, tuple(differences), tuple(early), tuple(notes))


def bytes_of(folder: Path) -> int:
    """Return the size of all loops' records. Raises RecordError if there are none."""
    return sum(path.stat().st_size for loop in recorded_loops(folder) for path in segments(folder, loop))


def _replay_loop(
    folder: Path, loop: str, plugins: RecordedPlugins, progress: Callable[[int], None]
) -> tuple[int, Record | None, Difference | None]:
    """Return the number of records that agree, the last of them, and the first that does not."""
    core = make_core(loop)

    def take_up(header: Header) -> None:
        nonlocal core
        if plugins.take_up(header):
            core = make_core(loop)  # a segment begins with a whole state

    count = 0
    last: Record | None = None
    located = (one for path in segments(folder, loop) for one in located_records(path, on_segment=take_up))
    for record, _, length in located:
        if last is not None and (record.tick, record.phase) <= (last.tick, last.phase):
            core = make_core(loop)  # another process began here, from nothing
        difference = _decide_again(core, record)
        if difference is not None:
            return count, last, difference
        count += 1
        last = record
        progress(length)
    return count, last, None


def _decide_again(core: Core, record: Record) -> Difference | None:
    core.apply(bytes(record.state), full=record.full)
    commands = core.decide(record.now)
    if commands != bytes(record.commands):
        return _difference(record, "commands", bytes(record.commands), commands)
    result = core.absorb(bytes(record.outcomes), record.now)
    if result != bytes(record.result):
        return _difference(record, "result", bytes(record.result), result)
    return None


def make_core(loop: str) -> Core:
    """Return a new core of a recorded loop. Raises RecordError for an unknown loop."""
    try:
        core = explaining(loop).core
    except UnknownLoop as error:
        raise RecordError(
            f"records of a loop `{loop}`, which this version does not know; it knows {', '.join(loop_names())}"
        ) from error
    if core is None:
        raise RecordError(f"records of a loop `{loop}`, which records nothing in this version")
    return core()


def _difference(record: Record, part: str, recorded: bytes, decided: bytes) -> Difference:
    return Difference(record.loop, record.tick, record.phase, part, recorded, decided)


def _first_difference(a: bytes, b: bytes) -> int:
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))
