"""Plug-ins of other packages: loaded only when they are named.

A package offers one as an entry point of a group such as ``kubetide.filters`` or ``kubetide.clouds``; one that is
not packaged is named as ``module:attribute``. To be installed alone has no effect.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from kubetide.ports.errors import KubetideError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Plugin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plug-in's identity: its group, its name there, and its package and version."""

    group: str
    name: str
    package: str = ""
    version: str = ""

    def __str__(self) -> str:
        of = " ".join(part for part in (self.package, self.version) if part)
        return f"{self.name} ({of})" if of else self.name


class PluginNotUsable(KubetideError):
    """A named plug-in is not installed or cannot be loaded; the text names it and the fix."""


def plugin_names(group: str) -> list[str]:
    """Return the plug-in names of installed packages in a group of entry points, sorted."""
    return sorted(_installed(group))


def load_plugin(group: str, name: str, setting: str) -> tuple[Plugin, Any]:
    """Return a plug-in by name, and its object.

    Args:
        group: The group of entry points.
        name: Of an entry point, or ``module:attribute``.
        setting: Which setting named it, for the error.

    Raises: PluginNotUsable.
    """
    installed = _installed(group)
    try:
        if name in installed:
            entry = installed[name]
            package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("", "")
            return Plugin(group, name, package, version), entry.load()
        if ":" in name:
            module, _, attribute = name.partition(":")
            return Plugin(group, name), getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        hint = ""
        if isinstance(error, ModuleNotFoundError) and error.name == name.partition(":")[0]:
            hint = "; install it, or name its folder in the environment variable PYTHONPATH"
        raise PluginNotUsable(f"{setting}: {name!r} cannot be loaded: {error}{hint}") from error
    there = ", ".join(sorted(installed)) or "none"
    raise PluginNotUsable(
        f"{setting}: there is no {name!r}; installed: {there}; one of your own is named as module:attribute"
    )


@dataclass(frozen=True, kw_only=True)
class PluginGroup(Generic[T]):
    """One group of entry points for other packages.

    Attributes:
        name: Of the group.
        setting: Which setting names its plug-ins.
        noun: What a plug-in of the group is called in errors.
        must: What it must be or have, in errors.
        fits: Whether an object is one.
        of_class: Whether a class may be offered, which is then called without arguments.
    """

    name: str
    setting: str
    noun: str
    must: str
    fits: Callable[[Any], bool]
    of_class: bool = False

    def load(self, name: str) -> tuple[Plugin, T]:
        """Return a plug-in by name, and its object. Raises PluginNotUsable."""
        plugin, offered = load_plugin(self.name, name, self.setting)
        if self.of_class and callable(offered):
            try:
                offered = offered()
            except TypeError as error:
                raise PluginNotUsable(f"{self.setting}: {name!r} cannot be loaded: {error}") from error
        if not self.fits(offered):
            raise PluginNotUsable(f"{self.setting}: {name!r} is no {self.noun}: it must {self.must}")
        fitting: T = offered
        return plugin, fitting


def _installed(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415  # answers from records need none

    return {entry.name: entry for entry in entry_points(group=group)}
