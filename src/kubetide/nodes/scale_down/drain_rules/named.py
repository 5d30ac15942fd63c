"""Drain rules of other packages: entry points of the group ``kubetide.drain-rules``, used when they are named."""

from __future__ import annotations

from functools import cache
from typing import Final

from kubetide.nodes.scale_down.drain_rules.base import Rule
from kubetide.nodes.scale_down.drain_rules.registry import RULES
from kubetide.ports.plugins import Plugin, PluginNotUsable, load_plugin

GROUP: Final = "kubetide.drain-rules"
SETTING: Final = "--drain-rules"


@cache
def named_rules(names: tuple[str, ...]) -> tuple[tuple[Plugin, Rule], ...]:
    """Return the plug-ins; each offers a ``Rule``, or a function of a pod and a ``DrainContext``. Raises PluginNotUsable."""
    found = []
    for name in names:
        plugin, offered = load_plugin(GROUP, name, SETTING)
        if not callable(offered) and not isinstance(offered, Rule):
            raise PluginNotUsable(
                f"{SETTING}: {name!r} is no drain rule: it must be a function of a pod and a context, or a Rule"
            )
        found.append((plugin, offered if isinstance(offered, Rule) else Rule(name, offered)))
    return tuple(found)


@cache
def rules_with(names: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules in the order in which they are asked: those that read budgets last, these plug-ins before them.

    Raises: PluginNotUsable.
    """
    if not names:
        return RULES
    first = (rule for rule in RULES if not rule.uses_allowance)
    last = (rule for rule in RULES if rule.uses_allowance)
    return (*first, *(rule for _, rule in named_rules(names)), *last)
