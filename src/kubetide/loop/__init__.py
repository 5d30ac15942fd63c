"""The shell that all loops share: one protocol, one runner, one entry per loop.

What runs loops is in ``loop.runner`` and ``loop.wiring``: answers from records do without an event loop.
"""

from kubetide.loop.base import BaseLoop
from kubetide.loop.entry import WEEK, Explainer, Explaining, HttpReply, Listener, LoopEntry, Past
from kubetide.loop.flags import NO_FLAGS, FlagError, FlagTable, NoSettings, Value, flags_of
from kubetide.loop.one_step import OneStepLoop
from kubetide.loop.outlook import Coming, Outlook
from kubetide.loop.protocol import Answers, Health, Loop, Offload, Owners, Parts, SourceHealth, Sources
from kubetide.loop.registry import (
    BUILT_IN,
    DEFAULT,
    EXPLAINED,
    RECORDED,
    SHIPPED,
    VIEWS,
    UnknownLoop,
    expand_groups,
    explaining,
    is_loop,
    loop_entries,
    loop_entry,
    loop_names,
)
from kubetide.loop.roles import CACHED, EVENTS, Grant, Role
from kubetide.loop.settings import LoopSettings, flag_names, is_list, is_switch, parse_flags
from kubetide.loop.status import Cell, Overview, Table

__all__ = [
    "BUILT_IN",
    "CACHED",
    "DEFAULT",
    "EVENTS",
    "EXPLAINED",
    "NO_FLAGS",
    "RECORDED",
    "SHIPPED",
    "VIEWS",
    "WEEK",
    "Answers",
    "BaseLoop",
    "Cell",
    "Coming",
    "Explainer",
    "Explaining",
    "FlagError",
    "FlagTable",
    "Grant",
    "Health",
    "HttpReply",
    "Listener",
    "Loop",
    "LoopEntry",
    "LoopSettings",
    "NoSettings",
    "Offload",
    "OneStepLoop",
    "Outlook",
    "Overview",
    "Owners",
    "Parts",
    "Past",
    "Role",
    "SourceHealth",
    "Sources",
    "Table",
    "UnknownLoop",
    "Value",
    "expand_groups",
    "explaining",
    "flag_names",
    "flags_of",
    "is_list",
    "is_loop",
    "is_switch",
    "loop_entries",
    "loop_entry",
    "loop_names",
    "parse_flags",
]
