"""What of a tick's reasons is news: those of verdicts that differ from the last tick's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.explain.reasons import Reason
from kubetide.horizontal.decision import Result, Settlement
from kubetide.horizontal.reasons import reasons_of, signature
from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.views import Key
from kubetide.units.steps import Steps, is_pause

_Said = tuple[Settlement, tuple[object, ...]]


class News:
    """Remembers what was said of each HPA last."""

    def __init__(self) -> None:
        self._keys: list[Key] = []
        self._said: list[_Said] = []

    def of(
        self, result: Result, specs: Mapping[Key, Autoscaler], holds: Sequence[str], *, full: bool
    ) -> Steps[tuple[tuple[Reason, ...], int]]:
        """Gives the reasons that are new, and the number of HPAs of which there is nothing new.

        Args:
            holds: Why nothing may be scaled down.
            full: Whether all reasons are wanted.
        """
        reasons: list[Reason] = []
        repeated = 0
        keys = [settlement.verdict.key for settlement in result.settlements]
        said: list[_Said] = []
        for settlement, before in zip(result.settlements, self._in_order(keys), strict=True):
            # Not due: what was said last still holds.
            if before is not None and not full:
                if settlement is before[0] or settlement.verdict.stage == "waiting":
                    said.append(before)
                    repeated += 1
                    continue
                now = signature(settlement)
                if before[1] == now:
                    said.append((settlement, before[1]))
                    repeated += 1
                    continue
            said.append((settlement, signature(settlement)))
            reasons += reasons_of(settlement, specs[settlement.verdict.key], holds)
            if is_pause(len(said)):
                yield
        self._keys, self._said = keys, said
        return tuple(reasons), repeated

    def _in_order(self, keys: list[Key]) -> Sequence[_Said | None]:
        """Gives what was said last in the order of the keys."""
        if keys == self._keys:
            return self._said
        known = dict(zip(self._keys, self._said, strict=True))
        return [known.get(key) for key in keys]
