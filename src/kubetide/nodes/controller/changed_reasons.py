"""Reasons that the last tick has not given already: only these are recorded."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.explain.reasons import Field, Reason

_Grouped = dict[tuple[str, str], list[Reason]]
"""By code and subject."""


class ChangedReasons:
    """Remembers the reasons of the last tick. Several of one code and subject, such as a group's answers to pods, are told apart."""

    def __init__(self) -> None:
        self._last: _Grouped = {}
        self._present: _Grouped = {}
        self._last_steps: list[tuple[Sequence[Reason], _Grouped]] = []
        self._present_steps: list[tuple[Sequence[Reason], _Grouped]] = []

    def of(self, reasons: Sequence[Reason], *, begins: bool) -> tuple[Reason, ...]:
        """Return the reasons of a step that the last tick did not give; ``begins``: whether it is the first step of its tick."""
        if begins:
            self._last, self._present = self._present, {}
            self._last_steps, self._present_steps = self._present_steps, []
        number = len(self._present_steps)
        step = self._last_steps[number] if number < len(self._last_steps) else None
        # They can be a million, which are compared sooner than grouped.
        repeats = step is not None and step[0] == reasons
        if step is None or not repeats:
            step = reasons, _grouped(reasons)
        self._present_steps.append(step)
        new: dict[int, None] = {}
        for key, those in step[1].items():
            before = self._last.get(key, [])
            # Mostly all are new or as they were.
            if not repeats and those != before:
                known = dict.fromkeys(map(_fields_of, before))
                new.update((id(one), None) for one in those if not known or _fields_of(one) not in known)
            self._present.setdefault(key, []).extend(those)
        return tuple([one for one in reasons if id(one) in new]) if new else ()


def _grouped(reasons: Sequence[Reason]) -> _Grouped:
    given: _Grouped = {}
    for one in reasons:
        given.setdefault((one.code, one.subject), []).append(one)
    return given


def _fields_of(reason: Reason) -> tuple[tuple[str, Field], ...]:
    return tuple(reason.fields.items())
