"""Past decisions about an object, from the reasons in a loop's records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.loop import WEEK, Past, explaining
from kubetide.runtime.recording.indexed_records import read_reasons
from kubetide.simulate.answers.moments import StateAt
from kubetide.simulate.outcome.marks import marks_for
from kubetide.units.time import Instant

_AT_ONCE = 40
"""Records that are looked through at once, from the newest on; twice as many each time."""


class PastDecision(NamedTuple):
    """A decision about the object.

    Attributes:
        record: Of the tick that made it first.
        text, why: What was decided, and its reasons.
        fruitless: Whether it changed nothing, as it was refused, failed or only advised.
        repeats: How often the same was decided again before anything else was, and ``last`` when that was last.
    """

    record: Record
    text: str
    why: tuple[str, ...] = ()
    fruitless: bool = False
    repeats: int = 0
    last: Instant | None = None

    def again(self, at: Instant) -> PastDecision:
        """Return it with one repeat more."""
        return self._replace(repeats=self.repeats + 1, last=at)


def decided_until(loop: str, state: StateAt, subject: str, most: int | None) -> tuple[PastDecision, ...]:
    """Return the decisions about an object until a moment; ``most`` limits those of earlier times."""
    about, reasons = state.until.about(subject), _ReasonsAbout(loop, subject)
    end, size = len(about), _AT_ONCE
    found: list[PastDecision] = []
    while True:
        begin = 0 if most is None else max(0, end - size)
        said = read_reasons(loop, about[begin:end], reasons)
        found = [*(one for record in said for one in _decided_about(record, subject)), *found]
        distinct = _without_repeats(found, state.last.now)
        # The first of a part may say again what stands before it, so there must be one more.
        if begin == 0 or sum(one.record.now != state.last.now for one in distinct) > (most or 0):
            return distinct
        end, size = begin, 2 * size


def said_a_week_before(loop: str, state: StateAt, subject: str) -> Past:
    """Yield what was said of an object, from a week before a moment back; of records that begin later, from their beginning on."""
    about, reasons = state.until.about(subject), _ReasonsAbout(loop, subject)
    end = bisect_right(about, state.last.now - WEEK, key=lambda entry: entry.now)
    ordered = about[:end][::-1] or about
    for begin in range(0, len(ordered), _AT_ONCE):
        for record in read_reasons(loop, ordered[begin : begin + _AT_ONCE], reasons):
            yield record.now, record.reasons


class _ReasonsAbout:
    """Reads those reasons of a record that say what was decided about an object, and why.

    Called with each reason as its JSON. Of a reason whose JSON does not hold the name nothing is needed, but for the why of
    what was done to another object that it names, and for what spoke against others.
    """

    def __init__(self, loop: str, subject: str) -> None:
        self._vocabulary = explaining(loop).vocabulary
        self._subject = subject
        self._name = msgspec.json.encode(subject)[1:-1]
        self._decode = msgspec.json.Decoder(Reason).decode

    def __call__(self, reasons: Sequence[bytes]) -> tuple[Reason, ...]:
        mine = tuple([self._decode(one) for one in reasons if self._name in one])
        if any(self._needs_others(one) for one in mine):
            return tuple(map(self._decode, reasons))
        return mine

    def _needs_others(self, reason: Reason) -> bool:
        vocabulary = self._vocabulary
        if not vocabulary.is_action(reason):
            return False
        return reason.subject != self._subject or vocabulary.has_alternatives(reason)


def _decided_about(record: Record, subject: str) -> list[PastDecision]:
    """Return what the record says was done about the object (for a group: about its nodes too), and what names the pod."""
    vocabulary = explaining(record.loop).vocabulary
    found = []
    for reason in record.reasons:
        if _names(reason, subject):
            found.append(PastDecision(record, vocabulary.text(reason)))
        elif _is_about(reason, subject) and vocabulary.is_action(reason):
            found += [
                PastDecision(record, mark.title, mark.why, mark.fruitless)
                for mark in marks_for(record, (reason,))
            ]
    return found


def _is_about(reason: Reason, subject: str) -> bool:
    if subject in {reason.subject, reason.fields.get("group"), reason.fields.get("pod")}:
        return True
    # A container of a VPA.
    return "/" in subject and reason.subject.startswith(f"{subject}/")


def _names(reason: Reason, subject: str) -> bool:
    return reason.fields.get("pod") == subject


def _without_repeats(decided: Sequence[PastDecision], now: Instant) -> tuple[PastDecision, ...]:
    """Count what only says again what was said before, a decision or all that one tick said; the tick at ``now`` stands alone."""
    distinct: list[PastDecision] = []
    before: list[str] = []
    places: list[int] = []
    for at, tick in groupby(decided, key=lambda one: one.record.now):
        said = list(tick)
        texts = [one.text for one in said]
        if at != now and texts == before:
            for place in dict.fromkeys(places):
                distinct[place] = distinct[place].again(at)
            continue
        before, places = texts, []
        for one in said:
            newest = distinct[-1] if distinct else None
            if newest is None or newest.text != one.text or newest.record.now != at == now:
                distinct.append(one)
            elif newest.record.now != at:
                distinct[-1] = newest.again(at)
            places.append(len(distinct) - 1)
    return tuple(distinct)
