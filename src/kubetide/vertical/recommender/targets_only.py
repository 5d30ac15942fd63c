"""The recommender's core reduced to the targets of VPAs: which VPA a workload has is known without pods and samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.explain.algorithm import StepCore
from kubetide.objects.meta import Key
from kubetide.units.time import Instant
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.views import VpaView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State


class _Views(msgspec.Struct, frozen=True):
    """The part of a ``Delta`` that says which VPAs there are."""

    settings: Settings | None = None
    vpas: Sequence[VpaView] = ()
    gone_vpas: Sequence[Key] = ()


_decoder: Final = msgspec.json.Decoder(_Views)


class TargetsCore(StepCore[State]):
    """Applies the VPAs, and decides nothing."""

    stands_alone = True

    def __init__(self) -> None:
        super().__init__(ALGORITHM)

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Apply the VPAs."""
        found = _decoder.decode(delta)
        self.take(Delta(settings=found.settings, vpas=found.vpas, gone_vpas=found.gone_vpas), full=full)

    def decide(self, now: Instant) -> bytes:  # noqa: ARG002  nothing is decided
        """Return no commands."""
        return b"{}"

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:  # noqa: ARG002  as above
        """Ignore the outcomes."""
        return b"{}"
