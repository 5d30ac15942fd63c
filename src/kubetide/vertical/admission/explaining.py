"""Explanations of the admission controller from records: its answers are in the pods themselves."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Vocabulary
from kubetide.loop import Explaining

EXPLAINING: Final = Explaining("admission", None, Vocabulary({}))
