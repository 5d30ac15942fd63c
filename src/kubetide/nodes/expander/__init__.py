"""Expanders: choose which of several groups grows."""

from __future__ import annotations

from kubetide.nodes.expander.base import Context, Expander, Option, Warned
from kubetide.nodes.expander.registry import (
    EXPANDERS,
    Choice,
    ExpanderError,
    asks_service,
    before_service,
    choose,
    expander_of,
    expander_plugins,
    needs_prices,
    packs_all_groups,
    parse_expanders,
    reads_priorities,
)

__all__ = [
    "EXPANDERS",
    "Choice",
    "Context",
    "Expander",
    "ExpanderError",
    "Option",
    "Warned",
    "asks_service",
    "before_service",
    "choose",
    "expander_of",
    "expander_plugins",
    "needs_prices",
    "packs_all_groups",
    "parse_expanders",
    "reads_priorities",
]
