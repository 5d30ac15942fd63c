"""Where two runs of one seed diverge: the first decision that only one of them made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kubetide.loop import explaining
from kubetide.runtime.recording.records import read_records, recorded_loops
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, format_rfc3339

_MOST_REASONS = 4


class Side(msgspec.Struct, frozen=True):
    """The decisions of one run at the moment of divergence.

    Attributes:
        decided: Its decisions that the other did not take, each with its reasons.
        instead: Where there are none: what it said of the same subjects then.
    """

    decided: tuple[Mark, ...]
    instead: tuple[str, ...] = ()


class Divergence(msgspec.Struct, frozen=True):
    """The first moment at which two runs decided differently."""

    at: Instant
    before: Side
    after: Side


def first_divergence(
    before: Sequence[Mark], after: Sequence[Mark], folders: tuple[Path, Path]
) -> Divergence | None:
    """Return the first moment at which the decisions differ, or None if all are equal.

    Args:
        before, after: The decisions of both runs, by time.
        folders: Where the records of both lie.
    Raises: RecordError.
    """
    at = parting_time(before, after)
    if at is None:
        return None
    there, here = _at(before, at), _at(after, at)
    ours, theirs = _without(there, here), _without(here, there)
    return Divergence(
        at,
        _side(ours, theirs, folders[0], at),
        _side(theirs, ours, folders[1], at),
    )


def parting_time(before: Sequence[Mark], after: Sequence[Mark]) -> Instant | None:
    """Return the first time at which the decisions of two runs differ; None if all are equal."""
    for one, other in zip(before, after, strict=False):
        if _what(one) != _what(other):
            found = min(one.at, other.at)
            # The order of one tick's decisions is no difference.
            if Counter(map(_what, _at(before, found))) != Counter(map(_what, _at(after, found))):
                return found
    longer = max(before, after, key=len)
    shorter = min(len(before), len(after))
    return longer[shorter].at if len(longer) > shorter else None


def _what(mark: Mark) -> tuple[Instant, str, str, str]:
    return mark.at, mark.loop, mark.subject, mark.title


def _at(marks: Sequence[Mark], at: Instant) -> list[Mark]:
    return [mark for mark in marks if mark.at == at]


def _without(marks: Sequence[Mark], others: Sequence[Mark]) -> list[Mark]:
    there = {_what(mark) for mark in others}
    return [mark for mark in marks if _what(mark) not in there]


def _side(own: Sequence[Mark], other: Sequence[Mark], folder: Path, at: Instant) -> Side:
    decided = tuple(own)
    return Side(decided, () if decided else tuple(_said(folder, at, other)))


def _said(folder: Path, at: Instant, marks: Sequence[Mark]) -> list[str]:
    """Return what the loops of those decisions said last of their subjects, in that tick or before.

    What they said in that tick of no subject counts too: a limit of the whole cluster keeps every group as it is.
    """
    found: list[str] = []
    for loop in sorted({mark.loop for mark in marks} & set(recorded_loops(folder))):
        subjects = {mark.subject for mark in marks if mark.loop == loop}
        vocabulary = explaining(loop).vocabulary
        last: list[str] = []
        for record in read_records(folder, loop):
            if record.now > at:
                break
            about = subjects | {""} if record.now == at else subjects
            concerned = [reason for reason in record.reasons if reason.subject in about]
            if concerned:
                last = [
                    f"{format_rfc3339(record.now)[11:19]} {vocabulary.text(reason)}" for reason in concerned
                ]
        found += last
    return found[:_MOST_REASONS]
