"""The node loop as far as its records explain it."""

from __future__ import annotations

from typing import Final

from kubetide.loop import Explaining
from kubetide.nodes.core import NodesCore
from kubetide.nodes.explain.explainers import EXPLAINERS
from kubetide.nodes.reasons import VOCABULARY

EXPLAINING: Final = Explaining("nodes", NodesCore, VOCABULARY, EXPLAINERS)
