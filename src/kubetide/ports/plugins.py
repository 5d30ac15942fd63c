"""Plug-ins of other packages: loaded only when somebody names them.

A package offers one as an entry point of a group such as ``kubetide.filters`` or ``kubetide.clouds``; one that is
not packaged is named as ``module:attribute``. To be installed alone has no effect.
"""

from __future__ import annotations

import importlib
from typing import Any

import msgspec

from kubetide.ports.errors import KubetideError


class Plugin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which plug-in: the group it belongs to, its name there, and the package and version that offered it."""

    group: str
    name: str
    package: str = ""
    version: str = ""

    def __str__(self) -> str:
        of = " ".join(part for part in (self.package, self.version) if part)
        return f"{self.name} ({of})" if of else self.name


class PluginNotUsable(KubetideError):
    """A plug-in that is named is not installed or cannot be loaded; the text names it and the fix."""


def load_plugin(group: str, name: str, setting: str) -> tuple[Plugin, Any]:
    """Return the plug-in of a name and what it offers.

    Args:
        group: The group of entry points.
        name: Of an entry point, or ``module:attribute``.
        setting: Which setting named it, for the error.

    Raises: PluginNotUsable.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  # answers from records need none

    installed = {entry.name: entry for entry in entry_points(group=group)}
    try:
        if name in installed:
            entry = installed[name]
            package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("", "")
            return Plugin(group, name, package, version), entry.load()
        if ":" in name:
            module, _, attribute = name.partition(":")
            return Plugin(group, name), getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise PluginNotUsable(f"{setting}: {name!r} cannot be loaded: {error}") from error
    there = ", ".join(sorted(installed)) or "none"
    raise PluginNotUsable(
        f"{setting}: there is no {name!r}; installed: {there}; one of your own is named as module:attribute"
    )
