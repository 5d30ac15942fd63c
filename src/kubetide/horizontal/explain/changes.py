"""The new reasons of a tick: those of verdicts that differ from the last tick's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Result, Settlement
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.reasons import reasons_of, signature
from kubetide.objects.meta import Key
from kubetide.units.steps import Steps, is_pause

_Signature = tuple[object, ...]


class ChangedReasons:
    """Remembers the last reasons of each HPA."""

    def __init__(self) -> None:
        self._settled: tuple[Settlement, ...] = ()
        self._keys: list[Key] = []
        self._said: list[_Signature | None] = []

    def of(
        self, result: Result, specs: Mapping[Key, Autoscaler], holds: Sequence[str], *, full: bool
    ) -> Steps[tuple[tuple[Reason, ...], int]]:
        """Return the new reasons, and the number of HPAs without new ones.

        Args:
            holds: Why nothing may be scaled down.
            full: Whether to return all reasons.
        """
        reasons: list[Reason] = []
        settled = result.settlements
        keys, said, new = self._taken_up(settled)
        if full:
            new = range(len(settled))
        repeated = len(settled) - len(new)
        for number, position in enumerate(new):
            settlement, before = settled[position], said[position]
            # Not due: what was said last still holds.
            if before is not None and not full and settlement.verdict.stage == "waiting":
                repeated += 1
                continue
            now = signature(settlement)
            if before == now and not full:
                repeated += 1
                continue
            said[position] = now
            reasons += reasons_of(settlement, specs[settlement.verdict.key], holds)
            if is_pause(number):
                yield
        self._settled, self._keys, self._said = settled, keys, said
        return tuple(reasons), repeated

    def _taken_up(
        self, settled: tuple[Settlement, ...]
    ) -> tuple[list[Key], list[_Signature | None], Sequence[int]]:
        """Return the HPAs, what was said last of each, and the positions of settlements that are not the very ones of then."""
        if len(settled) == len(self._settled):
            pairs = enumerate(zip(settled, self._settled, strict=True))
            new = [position for position, (now, before) in pairs if now is not before]
            keys = [settled[position].verdict.key for position in new]
            if keys == [self._keys[position] for position in new]:
                return self._keys, list(self._said), new
        known = dict(zip(self._keys, self._said, strict=True))
        keys = [settlement.verdict.key for settlement in settled]
        return keys, [known.get(key) for key in keys], range(len(settled))
