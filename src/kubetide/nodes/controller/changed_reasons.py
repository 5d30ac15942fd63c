"""Reasons that the last tick has not given already: only these are recorded."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.explain.reasons import Field, Reason


class ChangedReasons:
    """Remembers the reasons of the last tick. Several of one code and subject, such as a group's answers to pods, are told apart."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], list[Reason]] = {}
        self._present: dict[tuple[str, str], list[Reason]] = {}

    def of(self, reasons: Sequence[Reason], *, begins: bool) -> tuple[Reason, ...]:
        """Return the reasons of a step that the last tick did not give; ``begins``: whether it is the first step of its tick."""
        if begins:
            self._last, self._present = self._present, {}
        given: dict[tuple[str, str], list[Reason]] = {}
        for one in reasons:
            given.setdefault((one.code, one.subject), []).append(one)
        new: dict[int, None] = {}
        for key, those in given.items():
            before = self._last.get(key, [])
            # Mostly all are new or as they were, and they can be very many.
            if those != before:
                known = dict.fromkeys(map(_fields_of, before))
                new.update((id(one), None) for one in those if not known or _fields_of(one) not in known)
            self._present.setdefault(key, []).extend(those)
        return tuple([one for one in reasons if id(one) in new])


def _fields_of(reason: Reason) -> tuple[tuple[str, Field], ...]:
    return tuple(reason.fields.items())
