"""The state of a loop at a moment: the only place that replays recorded ticks, for every answer about that moment.

A core begins with the last whole state before the moment and decides the records behind it again. What it came to is
cached, so that the next question about the moment finds it there, and one about a later moment goes on from it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec

from kubetide.explain.records import Core, OneObjectCore, Record, ResumingCore
from kubetide.loop import explaining
from kubetide.ports.errors import KubetideError
from kubetide.runtime.recording.index_lines import Entries, Entry, index_of
from kubetide.runtime.recording.indexed_records import LoopIndex, header_of, read_entries
from kubetide.runtime.recording.records import RecordError
from kubetide.simulate.answers.named_plugins import named_plugins
from kubetide.simulate.answers.when import Moment, start_of_records
from kubetide.units.time import Instant, format_rfc3339

_MOST_CACHED = 2
"""States of one loop: a page of now, and one of another moment beside it."""


class WhyError(KubetideError):
    """An unknown object or a time outside the run; the text names what exists."""


class NotBegun(WhyError):
    """The loop had not decided anything at that time."""


class StateAt(msgspec.Struct):
    """A loop's state at a moment.

    Attributes:
        core: Read only: others ask it too, and later moments go on from it.
        last: The last record that counts, applied to the core.
        until: Where the records until then are.
        goes_on: Whether there are later records.
        is_over: Whether a time after the end of the records was asked for.
    """

    core: Core
    last: Record
    until: Entries
    goes_on: bool
    is_over: bool


class _Cached(msgspec.Struct):
    """A core, and how far it is.

    Attributes:
        place: Of the last record that was applied, with its time and subjects: another run may have one at the same place.
        is_decided: Whether that record was decided as well.
    """

    core: Core
    last: Record
    place: Entry
    is_decided: bool


class Moments:
    """The loops of a records folder at chosen moments, also while the run goes on. One caller at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._indexes: dict[str, LoopIndex] = {}
        self._cached: dict[str, list[_Cached]] = {}
        """By loop, the one that was asked last at the end."""

    @classmethod
    def of(cls, run: Path | Moments) -> Moments:
        """Return the moments of a folder; ``run`` itself if it already is one."""
        return run if isinstance(run, Moments) else cls(run)

    def entries(self, loop: str) -> Entries:
        """Return the positions of a loop's records, in order. Raises RecordError."""
        index = self._indexes.get(loop)
        if index is None:
            index = self._indexes[loop] = LoopIndex(self.folder, loop)
        return index.entries()

    @contextmanager
    def state(
        self,
        loop: str,
        at: Moment | None,
        *,
        decided: bool = True,
        alone: Callable[[], OneObjectCore] | None = None,
    ) -> Iterator[StateAt]:
        """Yield a loop's state at a moment; inside the block, the plug-ins of its records are in use.

        Args:
            at: The moment; None is the end of the records. After that end the state is that of the end.
            decided: Whether the last tick is decided as well, and not only what it was decided from.
            alone: Makes a core that follows one object; its state is for this question alone.
        Raises: RecordError; NotBegun where the loop had not begun.
        """
        entries = self.entries(loop)
        end = len(entries) if at is None else _end_of(entries, at)
        begin = _whole_before(entries, end)
        if begin is None:
            raise self._without_state(loop, entries, end)
        last = entries[end - 1]
        is_over = at is not None and end == len(entries) and at.at > last.now
        if is_over and at is not None and at.next_day:
            raise self._not_begun(loop, entries)
        with named_plugins() as plugins:
            header = header_of(last.path)
            plugins.take_up(header)
            since_whole = _unbroken(entries[begin:end])
            found = None if alone is None else _moved_alone(alone(), since_whole, decided=decided)
            if found is None:
                found = self._brought(loop, since_whole, decided=decided, keeps=not header.plugins)
            yield StateAt(found.core, found.last, entries[:end], end < len(entries), is_over)

    def _brought(self, loop: str, since_whole: Sequence[Entry], *, decided: bool, keeps: bool) -> _Cached:
        """Return a core to which all these records were applied, from the nearest that is cached."""
        cached = self._cached.setdefault(loop, [])
        found, rest = _nearest(cached, since_whole, decided=decided)
        if found is not None:
            # It moves on, or is there: either way it is the one that was asked last.
            cached.remove(found)
        moved = _moved(found or _fresh(loop), rest, decided=decided)
        if keeps:
            cached.append(moved)
            del cached[:-_MOST_CACHED]
        return moved

    def _without_state(self, loop: str, entries: Sequence[Entry], end: int) -> KubetideError:
        if end < len(entries):
            return self._not_begun(loop, entries)
        return RecordError(
            f"no whole record of the {loop} loop under {self.folder} yet; try again in a moment"
        )

    def _not_begun(self, loop: str, entries: Sequence[Entry]) -> NotBegun:
        """Say when the run begins."""
        start = format_rfc3339(start_of_records(self.folder))
        earliest = format_rfc3339(entries[0].now)
        later = "" if earliest == start else f", and the {loop} loop decides from {earliest} on"
        return NotBegun(f"the run begins at {start}{later}; choose such a time with --at")


def _end_of(entries: Sequence[Entry], at: Moment) -> int:
    """Return how many of the records are not past a moment."""
    end = bisect_left(entries, at.end, key=_time_of)
    if not at.first_tick:
        return end
    # All phases of a tick belong together.
    first = bisect_left(entries, at.at, key=_time_of)
    while first + 1 < end and entries[first + 1].tick == entries[first].tick:
        first += 1
    return min(first + 1, end)


def _time_of(entry: Entry) -> Instant:
    return entry.now


def _whole_before(entries: Sequence[Entry], end: int) -> int | None:
    """Return where the last whole state of so many records is; None where there is none."""
    return next((index for index in range(end - 1, -1, -1) if entries[index].full), None)


def _unbroken(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries. Raises RecordError where an index leaves a record out."""
    found = list(entries)
    for one, two in pairwise(found):
        if one.path == two.path and one.offset + one.length != two.offset:
            raise RecordError(
                f"{index_of(one.path).name} leaves out what is behind byte {one.offset} of {one.path.name}; delete it, "
                "and the records are read without it"
            )
    return found


def _nearest(
    cached: Sequence[_Cached], since_whole: Sequence[Entry], *, decided: bool
) -> tuple[_Cached | None, Sequence[Entry]]:
    """Return the cached core that is nearest before the end of these records, and the records behind it."""
    places = {entry: index for index, entry in enumerate(since_whole)}
    best: tuple[int, bool, _Cached] | None = None
    for one in cached:
        index = places.get(one.place)
        if index is None or (index == len(since_whole) - 1 and one.is_decided and not decided):
            continue
        if best is None or (index, one.is_decided) > best[:2]:
            best = index, one.is_decided, one
    return (None, since_whole) if best is None else (best[2], since_whole[best[0] + 1 :])


def _fresh(loop: str) -> Core:
    make = explaining(loop).core
    assert make is not None, "a loop that records has a core"
    return make()


def _moved(begin: _Cached | Core, rest: Sequence[Entry], *, decided: bool) -> _Cached:
    """Return a core that these records were applied to, all but the last one decided; ``decided``: that one, too."""
    core, last, place, is_decided = (
        (begin.core, begin.last, begin.place, begin.is_decided)
        if isinstance(begin, _Cached)
        else (begin, None, None, True)
    )
    resumes = _resumes(core, rest) if last is None else None
    for index, (entry, record) in enumerate(zip(rest, read_entries(rest), strict=True)):
        if last is not None and not is_decided and (resumes is None or index > resumes):
            _finish(core, last)
        if isinstance(core, ResumingCore) and index == resumes:
            core.resume(bytes(record.state))
        else:
            core.apply(bytes(record.state), full=record.full)
        last, place, is_decided = record, entry, False
    assert last is not None, "a whole state is among them"
    assert place is not None
    if decided and not is_decided:
        _finish(core, last)
        is_decided = True
    return _Cached(core, last, place, is_decided)


def _resumes(core: Core, entries: Sequence[Entry]) -> int | None:
    """Return which of the records is the first that must be decided again, behind a whole state; None for all of them."""
    if not isinstance(core, ResumingCore):
        return None
    return next((index for index in range(len(entries) - 1, 0, -1) if entries[index].has_memory), None)


def _moved_alone(core: OneObjectCore, rest: Sequence[Entry], *, decided: bool) -> _Cached | None:
    """Return a core that follows one object as ``_moved``; None where it cannot."""
    moved = _moved(core, rest, decided=decided)
    return moved if core.stands_alone else None


def _finish(core: Core, record: Record) -> None:
    """Decide a record that was applied, and take in what came of it."""
    core.decide(record.now)
    core.absorb(bytes(record.outcomes), record.now)
