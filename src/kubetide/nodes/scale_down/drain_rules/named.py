"""Drain rules of other packages: entry points of the group ``kubetide.drain-rules``, used when a flag names them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from kubetide.nodes.scale_down.drain_rules.base import Answer, DrainContext, Rule
from kubetide.nodes.scale_down.drain_rules.registry import RULES
from kubetide.objects.pod import Pod
from kubetide.ports.plugins import Plugin, PluginGroup

PLUGINS: Final = PluginGroup[Rule | Callable[[Pod, DrainContext], Answer | None]](
    name="kubetide.drain-rules",
    setting="--drain-rules",
    noun="drain rule",
    must="be a function of a pod and a context, or a Rule",
    fits=lambda offered: callable(offered) or isinstance(offered, Rule),
)


@cache
def named_rules(names: tuple[str, ...]) -> tuple[tuple[Plugin, Rule], ...]:
    """Return the plug-ins; each is a ``Rule``, or a function of a pod and a ``DrainContext``. Raises PluginNotUsable."""
    loaded = [(name, *PLUGINS.load(name)) for name in names]
    return tuple((plugin, one if isinstance(one, Rule) else Rule(name, one)) for name, plugin, one in loaded)


@cache
def rules_with(names: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules in evaluation order: those that read budgets last, these plug-ins before them.

    Raises: PluginNotUsable.
    """
    if not names:
        return RULES
    first = (rule for rule in RULES if not rule.uses_allowance)
    last = (rule for rule in RULES if rule.uses_allowance)
    return (*first, *(rule for _, rule in named_rules(names)), *last)
