"""Filter plug-ins of other packages: entry points of the group ``kubetide.filters``, used when a flag names them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubetide.ports.plugins import Plugin, PluginGroup, PluginNotUsable
from kubetide.scheduling.filters.base import CapacityFilter, Filter, MovingFilter, StaticFilter

PLUGINS: Final = PluginGroup[Filter](
    name="kubetide.filters",
    setting="scheduler-plugins",
    noun="filter",
    must="have name, refuse and failures, and passes, needs or judge",
    fits=lambda offered: isinstance(offered, (StaticFilter, CapacityFilter, MovingFilter)),
    of_class=True,
)


def named_filters(names: Iterable[str]) -> list[tuple[Plugin, Filter]]:
    """Return one instance of each plug-in, built without arguments, in the given order.

    Raises: PluginNotUsable for one that is not installed, cannot be loaded, is no filter, or is named twice.
    """
    found: dict[str, tuple[Plugin, Filter]] = {}
    for name in names:
        if name in found:
            raise PluginNotUsable(f"{PLUGINS.setting}: {name!r} is named twice; name it once")
        found[name] = PLUGINS.load(name)
    return list(found.values())
