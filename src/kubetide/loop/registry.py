"""The loops by name: a new one is its entry and a line here, or an entry point of another package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from kubetide.loop.entry import Explaining, LoopEntry
from kubetide.ports.errors import KubetideError
from kubetide.ports.plugins import PluginGroup, PluginNotUsable, plugin_names

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
    "horizontal": "kubetide.horizontal.explain.entry",
    "nodes": "kubetide.nodes.explain.entry",
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

PLUGINS: Final = PluginGroup[LoopEntry[Any]](
    name="kubetide.loops",
    setting="--controllers",
    noun="loop",
    must="be a LoopEntry",
    fits=lambda offered: isinstance(offered, LoopEntry),
)
"""What other packages offer; one is loaded when it is named."""


class UnknownLoop(KubetideError):
    """An unknown loop, or one that cannot be loaded; the text names the fix."""


def loop_names() -> tuple[str, ...]:
    """Return the names of all loops: those of this package, then those of others."""
    return (*BUILT_IN, *_NAMED_ONLY, *plugin_names(PLUGINS.name))


def is_loop(name: str) -> bool:
    """Return whether there is a loop of that name; what other packages offer is looked up for names that are not shipped."""
    return name in SHIPPED or name in plugin_names(PLUGINS.name)


def expand_groups(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of loops, each once; group names are replaced by their loops."""
    return tuple(dict.fromkeys(loop for name in names for loop in _TOGETHER.get(name, (name,))))


def loop_entry(name: str) -> LoopEntry[Any]:
    """Return the entry of a loop. Raises UnknownLoop."""
    module = _BUILT_IN.get(name) or _NAMED_ONLY.get(name)
    if module is not None:
        entry: LoopEntry[Any] = import_module(module).ENTRY
        return entry
    if not is_loop(name):
        raise UnknownLoop(f"there is no loop {name!r}; there are {', '.join(loop_names())}")
    try:
        return PLUGINS.load(name)[1]
    except PluginNotUsable as error:
        raise UnknownLoop(str(error)) from error


def explaining(name: str) -> Explaining:
    """Return the part of a loop that answers from records. Raises UnknownLoop."""
    module = _EXPLAINING.get(name) or RECORDED.get(name)
    if module is None:
        return loop_entry(name).explaining
    # Asked for every record, so a module that is there is not looked for.
    found: object = (sys.modules.get(module) or import_module(module)).EXPLAINING
    assert isinstance(found, Explaining), f"{module} has no EXPLAINING"
    return found


def loop_entries(names: Iterable[str] = BUILT_IN) -> tuple[LoopEntry[Any], ...]:
    """Return the entries of these loops. Raises UnknownLoop."""
    return tuple(loop_entry(name) for name in expand_groups(names))
