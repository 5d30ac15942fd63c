"""Expanders: which of several groups is to grow."""

from __future__ import annotations

from kubetide.nodes.expander.base import Expander, Option
from kubetide.nodes.expander.registry import (
    EXPANDERS,
    ExpanderError,
    choose,
    packs_all_groups,
    parse_expanders,
)

__all__ = [
    "EXPANDERS",
    "Expander",
    "ExpanderError",
    "Option",
    "choose",
    "packs_all_groups",
    "parse_expanders",
]
