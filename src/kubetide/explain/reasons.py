"""A reason of a decision, as data first and text last.

Every loop has a closed vocabulary of codes, one table in its ``reasons.py``; a code is never
renamed silently. Fields are numbers and names; the sentence is made here, from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import msgspec

from kubetide.units.quantity import readable

Field = str | int | float | bool | None


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One step of an explanation: a code of the loop's vocabulary, its subject, and the numbers."""

    code: str
    subject: str = ""
    fields: dict[str, Field] = {}


class Vocabulary:
    """The codes of one loop, and the sentence of each.

    ``{name}`` stands for a field or ``subject``, ``{nodes:node}`` for a count with its noun.

    Args:
        sentences: By code.
        actions: The codes that stand for something done (a rescale, a node bought) rather than for
            why; a report shows these as marks and the other reasons of the same subject as the why.
        fruitless: Those actions of which nothing came: refused, or only advised.
        changes: By code of an action, how the count of its subject changes: by a number, or from one field's
            value to another's.
        alternatives: By code of an action, the codes that say why other subjects were not chosen.
        telling: Returns, of the reasons for an action, those that a person learns something from.
        quantities: The fields that hold quantities; the sentence has them with few digits.
    """

    def __init__(
        self,
        sentences: Mapping[str, str],
        *,
        actions: Collection[str] = (),
        fruitless: Collection[str] = (),
        changes: Mapping[str, int | tuple[str, str]] = MappingProxyType({}),
        alternatives: Mapping[str, Collection[str]] = MappingProxyType({}),
        telling: Callable[[Sequence[Reason]], Sequence[Reason]] = lambda reasons: reasons,
        quantities: Collection[str] = (),
    ) -> None:
        self._sentences = dict(sentences)
        self._actions = frozenset(actions)
        self._fruitless = frozenset(fruitless)
        self._changes = dict(changes)
        self._alternatives = dict(alternatives)
        self.telling = telling
        self._quantities = frozenset(quantities)
        if unknown := self._actions - self._sentences.keys():
            raise ValueError(f"actions without a sentence: {sorted(unknown)}")
        if unknown := (self._fruitless | self._changes.keys() | self._alternatives.keys()) - self._actions:
            raise ValueError(f"no actions: {sorted(unknown)}")

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes, in the order of the table."""
        return tuple(self._sentences)

    def is_action(self, reason: Reason) -> bool:
        """Return whether the reason stands for an action."""
        return reason.code in self._actions

    def is_fruitless(self, action: Reason) -> bool:
        """Return whether the action had no effect."""
        return action.code in self._fruitless

    def change_of(self, action: Reason) -> int:
        """Return by how much the action changes the count of its subject; 0 if that is unknown."""
        change = self._changes.get(action.code, 0)
        if isinstance(change, int):
            return change
        old, new = (action.fields.get(name) for name in change)
        return new - old if isinstance(old, int) and isinstance(new, int) else 0

    def has_alternatives(self, action: Reason) -> bool:
        """Return whether reasons about others may explain why these were not chosen."""
        return action.code in self._alternatives

    def alternatives(self, action: Reason, reasons: Sequence[Reason]) -> list[Reason]:
        """Return the reasons why another subject was not chosen."""
        codes = self._alternatives.get(action.code, ())
        return [one for one in reasons if one.code in codes and one.subject != action.subject]

    def reason(self, code: str, subject: str = "", **fields: Field) -> Reason:
        """Return a reason. Raises KeyError for a code that the table lacks."""
        if code not in self._sentences:
            raise KeyError(f"{code} is not a reason of this loop")
        return Reason(code, subject, fields)

    def text(self, reason: Reason) -> str:
        """Return the reason as one English sentence with its numbers."""
        sentence = self._sentences.get(reason.code)
        if sentence is None:
            return f"{reason.code} {reason.subject} {reason.fields}".strip()
        values = {name: _shown(value) for name, value in reason.fields.items()}
        for name in self._quantities & values.keys():
            values[name] = readable(str(values[name]))
        return sentence.format_map(_Fields(subject=reason.subject, **values))


class _Count(int):
    """A whole number that can be said with its noun: ``{nodes:node}`` gives ``1 node`` or ``3 nodes``."""

    def __format__(self, noun: str) -> str:
        if not noun:
            return str(int(self))
        return f"{int(self)} {noun}" if self == 1 else f"{int(self)} {noun}s"


class _Unknown(str):
    """The name of a field that a record lacks, so that an old record still reads."""

    __slots__ = ()

    def __format__(self, noun: str) -> str:
        name = f"<{self!s}>"
        return f"{name} {noun}s" if noun else name


def _shown(value: Field) -> object:
    """A number as people read it; the record keeps all its digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return _Count(value)
    return value


class _Fields(dict[str, object]):
    """Fields by name."""

    def __missing__(self, key: str) -> _Unknown:
        return _Unknown(key)
