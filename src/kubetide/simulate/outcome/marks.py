"""Turns decision records into timeline marks as they are written, and adds the run's own messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from kubetide.explain.figures import FigureTable
from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record, Recorder
from kubetide.loop import explaining
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.steps import Steps


class MarkingRecorder:
    """Passes records on and reports each decision that acted, with its reason.

    ``figures`` returns the history of figures beside the records of a loop, by its name.
    """

    def __init__(
        self,
        inner: Recorder,
        on_mark: Callable[[Mark], None],
        figures: Callable[[str], tuple[FigureTable, ...]] = lambda _: (),
    ) -> None:
        self._inner = inner
        self._on_mark = on_mark
        self._figures = figures

    def wants_full(self, loop: str) -> bool:
        """Return the answer of the recorder behind."""
        return self._inner.wants_full(loop)

    def write(self, record: Record) -> None:
        """Pass the record on."""
        self._inner.write(self._marked(record))

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        """Pass the record on."""
        yield from self._inner.write_in_pieces(self._marked(record), state)

    def _marked(self, record: Record) -> Record:
        """Report the record's marks, and return it with the history of figures."""
        for mark in marks_of(record):
            self._on_mark(mark)
        figures = self._figures(record.loop)
        return replace(record, figures=(*record.figures, *figures)) if figures else record


def marks_of(record: Record) -> list[Mark]:
    """Return a mark for each action among the record's reasons.

    Its why are the other reasons of its subject, and for a purchase what spoke against other groups.
    """
    if not record.reasons:
        return []
    vocabulary = explaining(record.loop).vocabulary
    return marks_for(record, [reason for reason in record.reasons if vocabulary.is_action(reason)])


def marks_for(record: Record, actions: Sequence[Reason]) -> list[Mark]:
    """Return a mark for each of these actions of a record, as ``marks_of``."""
    if not actions:
        return []
    vocabulary = explaining(record.loop).vocabulary
    subjects = {action.subject for action in actions}
    why: dict[str, list[Reason]] = {}
    for reason in record.reasons:
        if reason.subject in subjects and not vocabulary.is_action(reason):
            why.setdefault(reason.subject, []).append(reason)
    return [
        Mark(
            at=record.now,
            loop=record.loop,
            subject=action.subject,
            title=vocabulary.text(action),
            why=tuple(
                vocabulary.text(reason)
                for reason in (
                    *vocabulary.telling(why.get(action.subject, ())),
                    *vocabulary.alternatives(action, record.reasons),
                )
            ),
            change=vocabulary.change_of(action),
            fruitless=vocabulary.is_fruitless(action),
            code=action.code,
        )
        for action in actions
    ]
