"""The loops by name: a new one is its entry and a line here, or an entry point of another package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kubetide.loop.entry import Explaining, LoopEntry
from kubetide.ports.errors import KubetideError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

_BUILT_IN: Final[Mapping[str, str]] = {
    "horizontal": "kubetide.horizontal.entry",
    "nodes": "kubetide.nodes.entry",
    "recommender": "kubetide.vertical.recommender.entry",
    "updater": "kubetide.vertical.updater.entry",
    "admission": "kubetide.vertical.admission.entry",
}
"""The module of each loop's ``ENTRY``, by name, in the order in which they are started."""

BUILT_IN: Final = tuple(_BUILT_IN)
"""The names of the loops of this package that run where none is named."""

_EXPLAINING: Final[Mapping[str, str]] = {
    "horizontal": "kubetide.horizontal.explaining",
    "nodes": "kubetide.nodes.explaining",
    "recommender": "kubetide.vertical.recommender.explaining",
    "updater": "kubetide.vertical.updater.explaining",
    "admission": "kubetide.vertical.admission.explaining",
}
"""The module of each loop's ``EXPLAINING``, by name: it loads no controller, so that an answer comes quickly."""

RECORDED: Final[Mapping[str, str]] = {"playground": "kubetide.simulate.playground.explaining"}
"""What is recorded and explained as loops are, and is none: what a person changed in an embedded cluster."""

EXPLAINED: Final[Mapping[str, str]] = {
    "hpa": "horizontal",
    "pod": "nodes",
    "provisioningrequest": "nodes",
    "capacitybuffer": "nodes",
    "node": "nodes",
    "nodegroup": "nodes",
    "vpa": "recommender",
    "update": "updater",
}
"""The loop of this package that explains a kind, so that the others need not be loaded to find it."""

VIEWS: Final[Mapping[str, tuple[str, ...]]] = {"pod": ("nodes",)}
"""The other answers about objects of those kinds, where there are any, likewise."""

_NAMED_ONLY: Final[Mapping[str, str]] = {
    "schedules": "kubetide.schedules.entry",
    "elastic": "kubetide.elastic.entry",
    "scaledobjects": "kubetide.elastic.keda.entry",
}
"""Further loops of this package, which run only where they are named."""

SHIPPED: Final = (*_BUILT_IN, *_NAMED_ONLY)
"""All loops of this package."""

DEFAULT: Final = ("horizontal", "nodes")
"""Those of them that a scenario runs where it names none."""

_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {"vertical": ("recommender", "updater", "admission")}
"""Words that stand for several loops."""

GROUP: Final = "kubetide.loops"
"""The entry points under which other packages offer a ``LoopEntry``; one is loaded when it is named."""


class UnknownLoop(KubetideError):
    """There is no loop of that name; the text names those there are."""


def loop_names() -> tuple[str, ...]:
    """Return the names of all loops: those of this package, then those that others offer."""
    return (*BUILT_IN, *_NAMED_ONLY, *sorted(point.name for point in _offered()))


def spelled_out(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of loops, each once, with the loops in the place of a word that stands for several."""
    return tuple(dict.fromkeys(loop for name in names for loop in _TOGETHER.get(name, (name,))))


def loop_entry(name: str) -> LoopEntry[Any]:
    """Return the entry of a loop. Raises UnknownLoop."""
    module = _BUILT_IN.get(name) or _NAMED_ONLY.get(name)
    if module is not None:
        found: object = import_module(module).ENTRY
    else:
        offered = _offered().select(name=name)
        if not offered:
            raise UnknownLoop(f"there is no loop {name!r}; there are {', '.join(loop_names())}")
        found = next(iter(offered)).load()
    assert isinstance(found, LoopEntry), f"the entry point {name} of {GROUP} is no LoopEntry"
    return found


def explaining(name: str) -> Explaining:
    """Return what of a loop answers from records. Raises UnknownLoop."""
    module = _EXPLAINING.get(name) or RECORDED.get(name)
    if module is None:
        return loop_entry(name).explaining
    # Asked for every record, so a module that is there is not looked for.
    found: object = (sys.modules.get(module) or import_module(module)).EXPLAINING
    assert isinstance(found, Explaining), f"{module} has no EXPLAINING"
    return found


def loop_entries(names: Iterable[str] = BUILT_IN) -> tuple[LoopEntry[Any], ...]:
    """Return the entries of these loops. Raises UnknownLoop."""
    return tuple(loop_entry(name) for name in spelled_out(names))


def _offered() -> EntryPoints:
    """Return the loops of other packages."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # answers about loops of this package need none

    return entry_points(group=GROUP)
