"""The loop's pure functions, for its controller and for replay."""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.explain.algorithm import Algorithm
from kubetide.schedules.decide import absorb, decide
from kubetide.schedules.decision import Outcome
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta

ALGORITHM: Final = Algorithm(
    state=State,
    decide=decide,
    absorb=absorb,
    read_delta=msgspec.json.Decoder(Delta).decode,
    read_outcomes=msgspec.json.Decoder(list[Outcome]).decode,
    restore=State.from_full,
)
