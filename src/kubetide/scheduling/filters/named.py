"""Filter plug-ins of other packages: entry points of the group ``kubetide.filters``, used when they are named."""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.ports.plugins import Plugin, PluginNotUsable, load_plugin
from kubetide.scheduling.filters.base import CapacityFilter, Filter, MovingFilter, StaticFilter

GROUP = "kubetide.filters"
SETTING = "scheduler-plugins"


def named_filters(names: Iterable[str]) -> list[tuple[Plugin, Filter]]:
    """Return one instance of each plug-in, made without arguments, in the given order.

    Raises: PluginNotUsable for one that is not installed, cannot be loaded, is no filter, or is named twice.
    """
    found: dict[str, tuple[Plugin, Filter]] = {}
    for name in names:
        if name in found:
            raise PluginNotUsable(f"{SETTING}: {name!r} is named twice; name it once")
        plugin, offered = load_plugin(GROUP, name, SETTING)
        try:
            made = offered()
        except TypeError as error:
            raise PluginNotUsable(f"{SETTING}: {name!r} cannot be loaded: {error}") from error
        if not isinstance(made, (StaticFilter, CapacityFilter, MovingFilter)):
            raise PluginNotUsable(
                f"{SETTING}: {name!r} is no filter: it must have name, refuse and failures, and passes, needs or judge"
            )
        found[name] = plugin, made
    return list(found.values())
