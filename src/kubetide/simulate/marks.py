"""Turns decision records into the marks of a report as they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.explain.records import Record, Recorder
from kubetide.horizontal.reasons import VOCABULARY as HORIZONTAL
from kubetide.horizontal.workings import PROPOSALS
from kubetide.nodes.reasons import VOCABULARY as NODES
from kubetide.simulate.timeline import Mark

VOCABULARIES: Mapping[str, Vocabulary] = {"horizontal": HORIZONTAL, "nodes": NODES}
"""The reasons of each loop, by the name in its records."""


class MarkingRecorder:
    """Hands records on and tells of each decision that did something, with its why."""

    def __init__(self, inner: Recorder, on_mark: Callable[[Mark], None]) -> None:
        self._inner = inner
        self._on_mark = on_mark

    def wants_full(self, loop: str) -> bool:
        """As the recorder behind says."""
        return self._inner.wants_full(loop)

    def write(self, record: Record, state: Iterable[bytes] | None = None) -> None:
        """Hands the record on."""
        for mark in marks_of(record):
            self._on_mark(mark)
        self._inner.write(record, state)


def marks_of(record: Record) -> list[Mark]:
    """Gives a mark for each action among the record's reasons.

    Its why are the other reasons of its subject, and for a purchase what spoke against other groups.
    """
    vocabulary = VOCABULARIES[record.loop]
    why: dict[str, list[Reason]] = {}
    actions: list[Reason] = []
    for reason in record.reasons:
        if vocabulary.is_action(reason):
            actions.append(reason)
        else:
            why.setdefault(reason.subject, []).append(reason)
    return [
        Mark(
            at=record.now,
            loop=record.loop,
            subject=action.subject,
            title=vocabulary.text(action),
            why=tuple(
                vocabulary.text(reason)
                for reason in (*_telling(why.get(action.subject, ())), *_alternatives(action, record.reasons))
            ),
            change=_change(action),
            fruitless=action.code in _FRUITLESS,
        )
        for action in actions
    ]


def _telling(reasons: Sequence[Reason]) -> list[Reason]:
    """Leaves out what a person learns nothing from: that every pod counts, and the largest of one proposal.

    The records keep them all.
    """
    proposals = sum(1 for reason in reasons if reason.code in PROPOSALS)
    return [
        reason
        for reason in reasons
        if not (reason.code == "Winner" and proposals == 1)
        and not (reason.code == "PodsCounted" and reason.fields.get("ready") == reason.fields.get("pods"))
    ]


def _alternatives(action: Reason, reasons: Sequence[Reason]) -> list[Reason]:
    """Gives why another group was not bought from; a tick tells only what is new since the one before."""
    if action.code != "Increased":
        return []
    return [
        reason
        for reason in reasons
        if reason.code in {"GroupSkipped", "GroupRefuses"} and reason.subject != action.subject
    ]


_FRUITLESS = frozenset(
    {
        "RescaleAdvised",
        "RescaleRefused",
        "IncreaseAdvised",
        "IncreaseRefused",
        "RemovalAdvised",
        "DeletionFailed",
    }
)

_CHANGES = {
    "Rescaled": ("current", "desired"),
    "RescaleAdvised": ("current", "desired"),
    "Increased": ("size", "to"),
    "IncreaseAdvised": ("size", "to"),
}
"""The fields that hold a count before and after, by code."""


def _change(action: Reason) -> int:
    if action.code == "NodeDeleted":
        return -1
    fields = _CHANGES.get(action.code)
    if fields is None:
        return 0
    old, new = (action.fields.get(field) for field in fields)
    return new - old if isinstance(old, int) and isinstance(new, int) else 0
