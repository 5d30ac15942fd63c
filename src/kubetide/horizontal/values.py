"""The answers of the custom and external metrics APIs, as deciding reads them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubetide.horizontal.metrics.types import Question
from kubetide.horizontal.samples import ONE_ZERO
from kubetide.ports.metrics import Int64Vector


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of this tick.

    Attributes:
        question: What was asked.
        error: Why there is no value, as conditions quote it; empty when there is one.
        pods: (V,) names, for ``pods``; of equal names the last one holds.
        milli: (V,) values in thousandths; of an object one.
    """

    question: Question
    error: str = ""
    pods: Sequence[str] = ()
    milli: Int64Vector = ONE_ZERO
