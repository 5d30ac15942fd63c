"""The loops by name: a new one is its entry and a line here, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from kubetide.loop.entry import LoopEntry
from kubetide.ports.errors import KubetideError

_BUILT_IN: Final[Mapping[str, str]] = {
    "horizontal": "kubetide.horizontal.entry",
    "nodes": "kubetide.nodes.entry",
}
"""The module of each loop's ``ENTRY``, by name, in the order in which they are started."""

BUILT_IN: Final = tuple(_BUILT_IN)
"""The names of the loops of this package."""

GROUP: Final = "kubetide.loops"
"""The entry points under which other packages offer a ``LoopEntry``; one is loaded when it is named."""


class UnknownLoop(KubetideError):
    """There is no loop of that name; the text names those there are."""


def loop_names() -> tuple[str, ...]:
    """Return the names of all loops: those of this package, then those that others offer."""
    return (*BUILT_IN, *sorted(point.name for point in entry_points(group=GROUP)))


def loop_entry(name: str) -> LoopEntry[Any]:
    """Return the entry of a loop. Raises UnknownLoop."""
    module = _BUILT_IN.get(name)
    if module is not None:
        found: object = import_module(module).ENTRY
    else:
        offered = entry_points(group=GROUP, name=name)
        if not offered:
            raise UnknownLoop(f"there is no loop {name!r}; there are {', '.join(loop_names())}")
        found = next(iter(offered)).load()
    assert isinstance(found, LoopEntry), f"the entry point {name} of {GROUP} is no LoopEntry"
    return found


def loop_entries(names: Iterable[str] = BUILT_IN) -> tuple[LoopEntry[Any], ...]:
    """Return the entries of these loops. Raises UnknownLoop."""
    return tuple(loop_entry(name) for name in names)
