"""The settings of all loops of a process, from one table of flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from kubetide.loop.entry import LoopEntry
from kubetide.loop.flags import FlagError, Value
from kubetide.loop.registry import loop_entries
from kubetide.ports.plugins import Plugin

S = TypeVar("S", bound=msgspec.Struct)

_VERSION = "kubernetes_version"


@dataclass(frozen=True)
class LoopSettings:
    """The settings of each loop, by the loop's name."""

    by_name: Mapping[str, msgspec.Struct]

    def of(self, model: type[S]) -> S:
        """Return the settings of that type, the defaults if no loop of the process has it."""
        return next((one for one in self.by_name.values() if isinstance(one, model)), model())

    @property
    def kubernetes_version(self) -> str | None:
        """The version of Kubernetes that the loops follow; empty where no flag says it, None where none needs it."""
        return next((getattr(one, _VERSION) for one in self.by_name.values() if hasattr(one, _VERSION)), None)

    def with_kubernetes_version(self, version: str) -> LoopSettings:
        """Return the settings of loops that follow that version of Kubernetes."""
        return LoopSettings(
            {
                name: msgspec.structs.replace(one, **{_VERSION: version}) if hasattr(one, _VERSION) else one
                for name, one in self.by_name.items()
            }
        )

    def plugins(self, entries: Iterable[LoopEntry[Any]]) -> list[Plugin]:
        """Return the named plug-ins of other packages, except scheduler filters. Raises PluginNotUsable."""
        return [
            plugin
            for entry in entries
            if entry.name in self.by_name
            for plugin in entry.plugins(self.by_name[entry.name])
        ]


def flag_names(entries: Iterable[LoopEntry[Any]] | None = None) -> list[str]:
    """Return the names of the loops' flags, sorted."""
    return sorted({name for entry in _or_built_in(entries) for name in entry.flags.fields})


def is_switch(name: str, entries: Iterable[LoopEntry[Any]] | None = None) -> bool:
    """Return whether a flag is boolean, so that its name alone means true."""
    return any(entry.flags.is_switch(name) for entry in _or_built_in(entries))


def is_list(name: str, entries: Iterable[LoopEntry[Any]] | None = None) -> bool:
    """Return whether a flag takes several values, so that repeating it appends."""
    return any(entry.flags.is_list(name) for entry in _or_built_in(entries))


def parse_flags(flags: Mapping[str, Value], entries: Iterable[LoopEntry[Any]] | None = None) -> LoopSettings:
    """Return the settings of the flags, with upstream's defaults for the rest.

    A leading ``--`` is allowed and underscores are read as dashes, as upstream does. A flag that several
    loops have is set for each of them.

    Args:
        entries: Of the loops whose flags these are; None for those of this package.

    Raises: FlagError.
    """
    known = _or_built_in(entries)
    named = {given.removeprefix("--").replace("_", "-"): value for given, value in flags.items()}
    names = flag_names(known)
    for name in named:
        if name not in names:
            import difflib  # noqa: PLC0415  only for what is misspelt

            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean --{near[0]}?" if near else "see docs/settings.md for the flags there are"
            raise FlagError(f"--{name}: unknown flag; {hint}")
    return LoopSettings({entry.name: entry.flags.parse(named) for entry in known})


def _or_built_in(entries: Iterable[LoopEntry[Any]] | None) -> tuple[LoopEntry[Any], ...]:
    return loop_entries() if entries is None else tuple(entries)
