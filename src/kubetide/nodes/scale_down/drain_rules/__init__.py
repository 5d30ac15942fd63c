"""Which pods allow the removal of their node: rules in order, the first answer decides."""

from __future__ import annotations

from kubetide.nodes.scale_down.drain_rules.base import (
    DRAIN,
    SKIP,
    WAIT,
    Answer,
    BlockReason,
    DrainContext,
    Rule,
    block,
)
from kubetide.nodes.scale_down.drain_rules.evaluate import (
    LAST_RANK,
    Blocked,
    Moves,
    Prepared,
    Verdict,
    combine_verdicts,
    evaluate,
    pods_to_move,
    prepare,
    removal_rank,
    settle,
    verdict_on,
)
from kubetide.nodes.scale_down.drain_rules.registry import RULES

__all__ = [
    "DRAIN",
    "LAST_RANK",
    "RULES",
    "SKIP",
    "WAIT",
    "Answer",
    "BlockReason",
    "Blocked",
    "DrainContext",
    "Moves",
    "Prepared",
    "Rule",
    "Verdict",
    "block",
    "combine_verdicts",
    "evaluate",
    "pods_to_move",
    "prepare",
    "removal_rank",
    "settle",
    "verdict_on",
]
