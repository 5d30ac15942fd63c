"""Filter plugins of other packages: entry points of the group ``kubetide.filters``."""

from __future__ import annotations

from importlib.metadata import entry_points

from kubetide.ports.errors import KubetideError
from kubetide.scheduling.filters.base import CapacityFilter, Filter, MovingFilter, StaticFilter

GROUP = "kubetide.filters"


class FilterNotUsable(KubetideError):
    """An installed filter plugin cannot be loaded or is none; the text names it."""


def installed_filters() -> tuple[Filter, ...]:
    """Gives the plugins that are installed, in order of name. Raises FilterNotUsable.

    An entry point is a plugin class, of which one instance is made without arguments.
    """
    found: list[Filter] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        where = f"filter plugin {entry.name!r} ({entry.value})"
        try:
            plugin = entry.load()()
        except (ImportError, AttributeError, TypeError) as error:
            raise FilterNotUsable(
                f"{where} cannot be loaded: {error}; mend or uninstall the package that offers it"
            ) from error
        if not isinstance(plugin, (StaticFilter, CapacityFilter, MovingFilter)):
            raise FilterNotUsable(
                f"{where} is no filter: it must have name, refuse and failures, and passes, needs or judge"
            )
        found.append(plugin)
    return tuple(found)
