"""The loop's core reduced to one HPA: the same answer about it in less time."""

from __future__ import annotations

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.decide import decide_one
from kubetide.horizontal.decision import Commands
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.state import Delta, State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant


class OneHpaCore(HorizontalCore):
    """Applies the specs, pods and scales of all HPAs, and decides about one of them.

    Attributes:
        stands_alone: Whether that is independent of what is decided about the others; where it is not, nothing is
            decided, and the whole core has the answer.
    """

    def __init__(self, key: Key) -> None:
        super().__init__()
        self.stands_alone = True
        self._key = key

    def _take(self, delta: Delta, *, full: bool) -> None:
        if not self.stands_alone:
            return
        if full:
            self.state = State.from_full(delta, only=self._key)
        else:
            self.state.apply(delta)
        spec = self.state.specs.get(self._key)
        self.stands_alone = spec is None or not _shares(spec)

    def _decided(self, now: Instant) -> Commands:
        if not self.stands_alone or self._key not in self.state.specs:
            return Commands(now, (), ())
        return decide_one(self.state, self._key, now)


def _shares(spec: Autoscaler) -> bool:
    """Return whether a decision may depend on those about other HPAs.

    Forecasts of all HPAs share one memory; options of other packages own what they remember.
    """
    return spec.options.forecasts or bool(spec.options.named)
