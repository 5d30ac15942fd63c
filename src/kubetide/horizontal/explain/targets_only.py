"""The loop's core reduced to the targets of HPAs: what scales a workload is known without pods, samples and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.facts.views import HpaView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta
from kubetide.objects.meta import Key
from kubetide.units.time import Instant


class _Specs(msgspec.Struct, frozen=True):
    """The part of a ``Delta`` that says which HPAs there are."""

    settings: Settings | None = None
    hpas: Sequence[HpaView] = ()
    gone_hpas: Sequence[Key] = ()


_decoder: Final = msgspec.json.Decoder(_Specs)


class TargetsCore(HorizontalCore):
    """Applies the specs of all HPAs, and decides nothing."""

    stands_alone = True

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Apply the specs."""
        found = _decoder.decode(delta)
        self._take(Delta(found.settings, found.hpas, found.gone_hpas), full=full)

    def decide(self, now: Instant) -> bytes:  # noqa: ARG002  nothing is decided
        """Return no commands."""
        return b"{}"

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:  # noqa: ARG002  as above
        """Ignore the outcomes."""
        return b"{}"
