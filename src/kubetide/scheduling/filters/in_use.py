"""The filters of this run: the built-in ones, then the plug-ins that the run names.

The set belongs to the run, not to the process: it is a context variable, so that runs beside each other in one
process, and the tasks and threads that each of them starts, keep their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from kubetide.ports.plugins import Plugin
from kubetide.scheduling.filters.base import (
    CapacityFilter,
    Filter,
    MovingFilter,
    StaticFilter,
    WholesaleFilter,
)
from kubetide.scheduling.filters.named import named_filters
from kubetide.scheduling.filters.registry import FILTERS


class FilterSet(msgspec.Struct, frozen=True):
    """Filters in evaluation order, and by capability.

    Attributes:
        every: All of them.
        wholesale: Those that may refuse all nodes at once.
        static, capacity: These evaluate a node by itself, and only more strictly as pods are added; ``packing`` relies
            on that.
        moving: These read where other pods are.
        plugins: Which of them are other packages'.
        shares_verdicts: Whether classes of equal ``PodClass.node_key`` and ``inter_pod_key`` get one verdict; plug-ins
            of other packages may read more of a pod.
    """

    every: tuple[Filter, ...]
    wholesale: tuple[WholesaleFilter, ...]
    static: tuple[StaticFilter, ...]
    capacity: tuple[CapacityFilter, ...]
    moving: tuple[MovingFilter, ...]
    plugins: tuple[Plugin, ...]
    shares_verdicts: bool


def _filter_set(filters: tuple[Filter, ...], plugins: tuple[Plugin, ...]) -> FilterSet:
    return FilterSet(
        every=filters,
        wholesale=tuple(one for one in filters if isinstance(one, WholesaleFilter)),
        static=tuple(one for one in filters if isinstance(one, StaticFilter)),
        capacity=tuple(one for one in filters if isinstance(one, CapacityFilter)),
        moving=tuple(one for one in filters if isinstance(one, MovingFilter)),
        plugins=plugins,
        shares_verdicts=not plugins,
    )


BUILT_IN = _filter_set(FILTERS, ())

_in_use: ContextVar[FilterSet] = ContextVar("filters", default=BUILT_IN)


def filters_in_use() -> FilterSet:
    """Return the filters of this run."""
    return _in_use.get()


def with_plugins(names: Iterable[str]) -> FilterSet:
    """Return the built-in filters followed by these plug-ins. Raises: PluginNotUsable."""
    loaded = named_filters(names)
    if not loaded:
        return BUILT_IN
    return _filter_set((*FILTERS, *(one for _, one in loaded)), tuple(plugin for plugin, _ in loaded))


def use_filters(filters: FilterSet) -> None:
    """Set the filters for this task and the tasks that it starts."""
    _in_use.set(filters)


def plugins_sentence(filters: FilterSet) -> str:
    """Return a sentence that names the plug-ins in use, and their cost."""
    named = ", ".join(str(one) for one in filters.plugins)
    return (
        f"scheduler plug-ins {named}: asked after the built-in filters; like pods do not share verdicts with them, "
        "so a tick with many pods takes longer"
    )


@contextmanager
def using_filters(filters: FilterSet) -> Iterator[None]:
    """Use these filters inside the ``with`` block."""
    token = _in_use.set(filters)
    try:
        yield
    finally:
        _in_use.reset(token)
