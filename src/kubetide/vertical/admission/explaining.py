"""The admission controller as far as records explain it: what it answers stands in the pods themselves."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Vocabulary
from kubetide.loop import Explaining

EXPLAINING: Final = Explaining("admission", None, Vocabulary({}))
