"""The recommender's pure functions, for its controller and for replay."""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.explain.algorithm import Algorithm
from kubetide.explain.arrays import decode_array, encode_array
from kubetide.vertical.recommender.decide import absorb, decide
from kubetide.vertical.recommender.decision import Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.dump import restored
from kubetide.vertical.recommender.state import State

ALGORITHM: Final = Algorithm(
    state=State,
    decide=decide,
    absorb=absorb,
    read_delta=msgspec.json.Decoder(Delta, dec_hook=decode_array).decode,
    read_outcomes=msgspec.json.Decoder(Outcomes).decode,
    restore=restored,
    encode=msgspec.json.Encoder(enc_hook=encode_array).encode,
)
