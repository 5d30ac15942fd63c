"""The loop's pure functions, for its controller and for replay."""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.elastic.keda.commands import Outcome
from kubetide.elastic.keda.decide import decide
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.state import Delta, State
from kubetide.explain.algorithm import Algorithm

ALGORITHM: Final = Algorithm(
    state=State,
    decide=decide,
    absorb=absorb,
    read_delta=msgspec.json.Decoder(Delta).decode,
    read_outcomes=msgspec.json.Decoder(list[Outcome]).decode,
)
