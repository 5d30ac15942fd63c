"""The dashboard's answers from a records folder, cached until something is added to the folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from kubetide.explain.records import Record
from kubetide.objects.base import json_name
from kubetide.runtime.recording.folder import SUMMARY, is_running
from kubetide.runtime.recording.indexed_records import read_reasons
from kubetide.runtime.recording.record_tail import RecordTail
from kubetide.runtime.recording.records import RecordError, recorded_loops
from kubetide.simulate.answers.ahead import PlanAhead, plan_ahead
from kubetide.simulate.answers.moments import Moments
from kubetide.simulate.answers.status import Decision, Status, decision_of, status_of
from kubetide.simulate.answers.when import Moment, read_moment
from kubetide.simulate.answers.why import (
    Answer,
    WhyError,
    answer_about,
    answer_text,
    explained_kinds,
    objects_of,
    scalers_of,
)
from kubetide.simulate.outcome.marks import marks_of
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.outcome.table import SummaryCells, summary_cells
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, before, format_rfc3339, parse_duration
from kubetide.web.past import MOST_POINTS, Figures, Past

T = TypeVar("T")

BUCKETS: Final = 240
"""Of the histogram of decisions."""

_MOST_ANSWERS = 256
"""Kept at once."""

_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
"""Kinds that are explained by what scales them."""


class _Api(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """Base of what the API answers with."""


class Span(_Api, frozen=True, kw_only=True):
    """The time span of the records.

    Attributes:
        start, end: Of the first and the last tick (RFC 3339).
        running: Whether the run goes on.
        run: Counts the runs that were seen in the folder: a later one writes in the place of the one before.
        decisions: How many each of equal parts of the time between has, by loop.
        kinds: What can be explained, and the views of each.
    """

    start: str
    end: str
    running: bool
    run: int
    decisions: dict[str, list[int]]
    kinds: dict[str, tuple[str, ...]]


class MarkedDecision(Decision, frozen=True, kw_only=True):
    """A decision as a chart marks it: ``change`` counts the pods or nodes that it adds, negative if it removes them."""

    change: int


class Decisions(_Api, frozen=True, kw_only=True):
    """The newest matching decisions, newest first; ``found`` counts all matches."""

    found: int
    decisions: tuple[MarkedDecision, ...]


class Outcome(_Api, frozen=True, kw_only=True):
    """The result of a simulation, as numbers and as cells for people; None before its end, and for other runs."""

    summary: Summary | None = None
    cells: SummaryCells | None = None


class Explanation(_Api, frozen=True, kw_only=True):
    """The explanation of an object: the lines of ``kubetide explain``.

    Attributes:
        answer: The same as data, with all that was decided before; where that was asked for.
    """

    kind: str
    name: str
    lines: tuple[str, ...]
    answer: Answer | msgspec.UnsetType = msgspec.UNSET


class History:
    """A records folder, also of a running run. One caller at a time.

    Each method raises RecordError where the records cannot be read, and ValueError for a time that is none.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run = 0
        self._version: tuple[int, ...] = ()
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget all that was read: what is in the folder now is another run."""
        self._run += 1
        self._moments = Moments(self._folder)
        self._tails: dict[str, RecordTail] = {}
        self._figures = Figures(self._folder)
        self._marks: list[Mark] = []
        self._first: Instant | None = None
        self._last: Instant | None = None
        self._answers.clear()

    def version(self) -> tuple[int, ...]:
        """Return sizes and times of the record files: they change when something is recorded, or the run ends."""
        written: list[int] = []
        for path in sorted((self._folder / "records").glob("*.jsonl")):
            # A run that begins takes away the files of the one before.
            with suppress(FileNotFoundError):
                found = path.stat()
                written += found.st_size, found.st_mtime_ns
        return (*written, int((self._folder / SUMMARY).exists()))

    def span(self) -> Span:
        """Return the time span of the records."""
        if is_running(self._folder) and not any((self._folder / "records").glob("*.jsonl")):
            raise RecordError(
                "The run has begun, and no loop has decided yet: this page shows it as soon as one has."
            )
        self._follow()
        if self._first is None or self._last is None:
            raise RecordError(f"nothing is recorded under {self._folder} yet; try again in a moment")
        return Span(
            start=format_rfc3339(self._first),
            end=format_rfc3339(self._last),
            running=is_running(self._folder),
            run=self._run,
            decisions=histogram(self._tails, self._marks, self._first, self._last),
            kinds=explained_kinds(self._folder),
        )

    def status(self, at: str) -> Status:
        """Return the page of ``kubetide status`` at a time; empty means the end."""
        return self._cached(("status", at), lambda: status_of(self._moments, self._moment(at))[0])

    def summary(self) -> Outcome:
        """Return the result of the run."""
        try:
            summary = msgspec.json.decode((self._folder / SUMMARY).read_bytes(), type=Summary)
        except (OSError, msgspec.DecodeError):
            return Outcome()
        return Outcome(summary=summary, cells=summary_cells(summary))

    def objects(self, at: str) -> dict[str, list[str]]:
        """Return the names of all explainable objects at a time, by kind."""
        return self._cached(("objects", at), lambda: objects_of(self._moments, self._moment(at)))

    def explain(self, kind: str, name: str, at: str, view: str, *, whole: bool = False) -> Explanation:
        """Return the explanation of an object, of a workload that of what scales it; ``whole``: with it as data.

        Raises WhyError for an unknown one.
        """

        def explanation() -> Explanation:
            moment = self._moment(at)
            of, subject = self._scaler(kind, name, moment) if kind in _WORKLOADS else (kind, name)
            namespace, _, own = subject.rpartition("/")
            answer = answer_about(
                self._moments,
                of,
                own,
                namespace=namespace or "default",
                at=moment,
                view=view,
                whole=whole,
            )
            lines = tuple(answer_text(answer).splitlines())
            return Explanation(kind=kind, name=name, lines=lines, answer=answer if whole else msgspec.UNSET)

        return self._cached(("explain", kind, name, at, view, whole), explanation)

    def _scaler(self, kind: str, name: str, at: Moment | None) -> tuple[str, str]:
        """Return kind and name of what scales a workload. Raises WhyError where nothing does."""
        found = scalers_of(self._moments, f"{kind}/{name}", at)
        if not found:
            raise WhyError(f"nothing scales {kind} {name}; ask about one of its pods")
        return found[0]

    def ahead(self, at: str, ahead: str) -> PlanAhead:
        """Return the coming events from a time on, within a duration: ``kubetide plan``. Raises ValueError for no duration."""
        length = parse_duration(ahead)
        if length <= 0:
            raise ValueError(f"ahead={ahead}: not above 0")
        return self._cached(
            ("ahead", at, length), lambda: plan_ahead(self._moments, length, self._moment(at))
        )

    def past(self, *, kind: str, name: str, figure: str, at: str, window: str, points: int) -> Past:
        """Return the matching figures within a window before a time; no window means all of the time before it."""
        self._follow()
        moment = self._moment(at)
        until = self._last or Instant(0)
        if moment is not None:
            until = Instant(min(moment.at, until))
        since = self._first or Instant(0)
        if window:
            length = parse_duration(window)
            if length <= 0:
                raise ValueError(f"window={window}: not above 0")
            since = Instant(max(since, before(until, length)))
        if not 1 <= points <= MOST_POINTS:
            raise ValueError(f"points={points}: not from 1 to {MOST_POINTS}")
        return self._cached(
            ("past", kind, name, figure, since, until, points),
            lambda: self._figures.past(
                kind=kind, name=name, figure=figure, since=since, until=until, points=points
            ),
        )

    def whole_past(self, values: int) -> Past:
        """Return all figures of the whole time, with at most about ``values`` values."""
        self._follow()
        return self._figures.whole(self._first or Instant(0), self._last or Instant(0), values)

    def decisions(
        self, *, words: str, loop: str, subject: str, until: str, limit: int, skip: int = 0
    ) -> Decisions:
        """Return the newest decisions: of a loop, about a subject, with all the words, until a time.

        Args:
            subject: With a loop also parts of it, such as the containers of a VPA.
            skip: So many of the newest are left out: those that a page before has shown.
        """
        self._follow()
        moment = self._moment(until)
        parts = words.lower().split()
        found = [
            mark
            for mark in self._marks
            if (not loop or mark.loop == loop)
            and (moment is None or mark.at < moment.end)
            and (not subject or _is_about(mark, subject, with_parts=bool(loop)))
            and (not parts or _has(mark, parts))
        ]
        newest = found[::-1][skip : skip + limit]
        return Decisions(found=len(found), decisions=tuple(map(marked, newest)))

    def _moment(self, at: str) -> Moment | None:
        if not at:
            return None
        if self._first is None:
            self._follow()
        return read_moment(at, self._first or Instant(0))

    def _follow(self) -> None:
        """Take in what was recorded since the last time; where another run has begun, what it has recorded."""
        loops = recorded_loops(self._folder)
        if any(loop not in loops or tail.is_of_another_run() for loop, tail in self._tails.items()):
            self._begin_anew()
        new: list[Mark] = []
        for loop in loops:
            for record in self._new_records(loop):
                new += marks_of(record)
                self._first = record.now if self._first is None else min(self._first, record.now)
                self._last = record.now if self._last is None else max(self._last, record.now)
        if new:
            self._marks = sorted((*self._marks, *new), key=lambda mark: mark.at)

    def _new_records(self, loop: str) -> Iterator[Record]:
        """Yield the records of a loop since the last time that have reasons, with these at least, and the first and the last."""
        tail = self._tails.get(loop)
        if tail is None:
            tail = self._tails[loop] = RecordTail(self._folder, loop)
            there = self._moments.entries(loop)
            if there:
                tail.skip_to(there[-1].path, there[-1].offset + there[-1].length)
            # Of records without reasons only the times count, and those of the first and the last are enough.
            chosen = {*there.named(), 0, len(there) - 1} if there else set[int]()
            yield from read_reasons(loop, [there[index] for index in sorted(chosen)])
        yield from tail.read()

    def _cached(self, key: tuple[Any, ...], answer: Callable[[], T]) -> T:
        """Return an answer that was given before, as long as nothing was recorded since."""
        version = self.version()
        if version != self._version or len(self._answers) > _MOST_ANSWERS:
            self._version = version
            self._answers.clear()
        if key not in self._answers:
            self._answers[key] = answer()
        found: T = self._answers[key]
        return found


def histogram(
    loops: Iterable[str], marks: Iterable[Mark], first: Instant, last: Instant
) -> dict[str, list[int]]:
    """Return, per loop, the number of decisions in each of equal parts of a time."""
    length = max(last - first, 1)
    counts: dict[str, Counter[int]] = {loop: Counter() for loop in loops}
    for mark in marks:
        counts[mark.loop][min((mark.at - first) * BUCKETS // length, BUCKETS - 1)] += 1
    return {loop: [one[bucket] for bucket in range(BUCKETS)] for loop, one in counts.items()}


def marked(mark: Mark) -> MarkedDecision:
    """Return a decision as a chart marks it."""
    return MarkedDecision(**msgspec.structs.asdict(decision_of(mark)), change=mark.change)


def _is_about(mark: Mark, subject: str, *, with_parts: bool) -> bool:
    if with_parts and "/" in subject and mark.subject.startswith(f"{subject}/"):
        return True
    return subject == mark.subject or subject in mark.title.replace(",", " ").replace(":", " ").split()


def _has(mark: Mark, words: list[str]) -> bool:
    text = " ".join((mark.title, mark.subject, *mark.why)).lower()
    return all(word in text for word in words)
