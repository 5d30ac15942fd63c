"""A reason: why a decision is what it is, as data first and text last.

Every loop has a closed vocabulary of codes, one table in its ``reasons.py``; a code is never
renamed silently. Fields are numbers and names; the sentence is made here, from the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

Field = str | int | float | bool | None


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One step of an explanation: a code of the loop's vocabulary, what it is about, and the numbers."""

    code: str
    subject: str = ""
    fields: dict[str, Field] = {}


class Vocabulary:
    """The codes of one loop and the sentence of each: ``{name}`` stands for a field or ``subject``.

    Args:
        sentences: By code.
        actions: The codes that stand for something done (a rescale, a node bought) rather than for
            why; a report shows these as marks and the other reasons of the same subject as the why.
    """

    def __init__(self, sentences: Mapping[str, str], *, actions: Collection[str] = ()) -> None:
        self._sentences = dict(sentences)
        self._actions = frozenset(actions)
        if unknown := self._actions - self._sentences.keys():
            raise ValueError(f"actions without a sentence: {sorted(unknown)}")

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes, in the order of the table."""
        return tuple(self._sentences)

    def is_action(self, reason: Reason) -> bool:
        """Whether the reason stands for something done."""
        return reason.code in self._actions

    def reason(self, code: str, subject: str = "", **fields: Field) -> Reason:
        """Makes a reason. Raises KeyError for a code that the table lacks."""
        if code not in self._sentences:
            raise KeyError(f"{code} is not a reason of this loop")
        return Reason(code, subject, fields)

    def text(self, reason: Reason) -> str:
        """Renders the reason as one English sentence with its numbers."""
        sentence = self._sentences.get(reason.code)
        if sentence is None:
            return f"{reason.code} {reason.subject} {reason.fields}".strip()
        values = {name: _shown(value) for name, value in reason.fields.items()}
        return sentence.format_map(_Fields(subject=reason.subject, **values))


def _shown(value: Field) -> Field:
    """A number as people read it; the record keeps all its digits."""
    return f"{value:.4g}" if isinstance(value, float) else value


class _Fields(dict[str, Field]):
    """Fields by name; one that is missing shows as its own name, so that an old record still reads."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"
