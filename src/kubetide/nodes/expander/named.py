"""Expanders of other packages: entry points of the group ``kubetide.expanders``, used when they are named."""

from __future__ import annotations

from functools import cache
from typing import Final

from kubetide.nodes.expander.base import Expander
from kubetide.ports.plugins import Plugin, PluginNotUsable, load_plugin

GROUP: Final = "kubetide.expanders"
SETTING: Final = "--expander"


@cache
def named_expander(name: str) -> tuple[Plugin, Expander]:
    """Return the plug-in: a function of options and a context that leaves the best of them. Raises PluginNotUsable."""
    plugin, offered = load_plugin(GROUP, name, SETTING)
    if not callable(offered):
        raise PluginNotUsable(
            f"{SETTING}: {name!r} is no expander: it must be a function of options and a context"
        )
    expander: Expander = offered
    return plugin, expander
