"""Expanders of other packages: entry points of the group ``kubetide.expanders``, used when they are named."""

from __future__ import annotations

from functools import cache
from typing import Final

from kubetide.nodes.expander.base import Expander
from kubetide.ports.plugins import Plugin, PluginGroup

PLUGINS: Final = PluginGroup[Expander](
    name="kubetide.expanders",
    setting="--expander",
    noun="expander",
    must="be a function of options and a context",
    fits=callable,
)


@cache
def named_expander(name: str) -> tuple[Plugin, Expander]:
    """Return the plug-in: a function of options and a context that leaves the best of them. Raises PluginNotUsable."""
    return PLUGINS.load(name)
