"""What of a tick's reasons is news: those of verdicts that differ from the last tick's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Result, Settlement
from kubetide.horizontal.reasons import reasons_of, signature
from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.views import Key
from kubetide.units.steps import Steps, is_pause

_Signature = tuple[object, ...]


class News:
    """Remembers what was said of each HPA last."""

    def __init__(self) -> None:
        self._settled: tuple[Settlement, ...] = ()
        self._said: list[_Signature | None] = []

    def of(
        self, result: Result, specs: Mapping[Key, Autoscaler], holds: Sequence[str], *, full: bool
    ) -> Steps[tuple[tuple[Reason, ...], int]]:
        """Gives the reasons that are new, and the number of HPAs of which there is nothing new.

        Args:
            holds: Why nothing may be scaled down.
            full: Whether all reasons are wanted.
        """
        reasons: list[Reason] = []
        settled = result.settlements
        said = self._in_order(settled)
        new = range(len(settled)) if full else self._different(settled)
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
        self._settled, self._said = settled, said
        return tuple(reasons), repeated

    def _different(self, settled: Sequence[Settlement]) -> Sequence[int]:
        """Gives the positions of settlements that are not the very ones of the last tick."""
        if len(settled) != len(self._settled):
            return range(len(settled))
        pairs = enumerate(zip(settled, self._settled, strict=True))
        return [position for position, (now, before) in pairs if now is not before]

    def _in_order(self, settled: Sequence[Settlement]) -> list[_Signature | None]:
        """Gives what was said last of each HPA."""
        before = self._settled
        if len(settled) == len(before) and all(
            now is old or now.verdict.key == old.verdict.key for now, old in zip(settled, before, strict=True)
        ):
            return list(self._said)
        known = {old.verdict.key: said for old, said in zip(before, self._said, strict=True)}
        return [known.get(settlement.verdict.key) for settlement in settled]
