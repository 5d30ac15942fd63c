"""Expanders of other packages: entry points of the group ``kubetide.expanders``, used when a flag names them."""

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
    """Return the plug-in: a function of options and a context that returns the best options. Raises PluginNotUsable."""
    return PLUGINS.load(name)
