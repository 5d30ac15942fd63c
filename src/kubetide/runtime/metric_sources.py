"""Sources of external metrics from other packages: entry points of the group ``kubetide.metric-sources``.

``--metric-sources`` names them, and the label ``horizontal.kubetide.io/source`` in the selector of an External metric
chooses one. All other metrics come from where they come from without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NamedTuple

from kubetide.cluster.metric_ports.promql import PROMETHEUS, SOURCE
from kubetide.horizontal.controller.sources import GuardedSource
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError, NoSeries
from kubetide.ports.metrics import ExternalMetricOpener, ExternalMetricSource, ExternalValues
from kubetide.ports.plugins import Plugin, PluginGroup, PluginNotUsable
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import seconds

SETTING: Final = "--metric-sources"

PLUGINS: Final = PluginGroup[ExternalMetricOpener](
    name="kubetide.metric-sources",
    setting=SETTING,
    noun="metric source",
    must="be a function of a clock that returns an async context manager",
    fits=callable,
)

_PATIENCE: Final = seconds(5)
"""Less than is waited for all external metrics together."""

_LARGEST: Final = 2**63 - 1
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class NamedOpener(NamedTuple):
    """A named source: selectors refer to ``name``."""

    name: str
    plugin: Plugin
    open: ExternalMetricOpener


def load_sources(names: Iterable[str]) -> list[NamedOpener]:
    """Return the sources that a setting names; for ``module:attribute``, selectors use the attribute.

    Raises: PluginNotUsable where one is missing, cannot be opened, or two have one name.
    """
    found: dict[str, NamedOpener] = {}
    for text in names:
        name = text.rpartition(":")[2]
        if name in found or name == PROMETHEUS or not _LABEL_VALUE.fullmatch(name):
            raise PluginNotUsable(
                f"{SETTING}: {text!r} cannot be called {name!r} in selectors; give it a name of its own that is a label's value"
            )
        found[name] = NamedOpener(name, *PLUGINS.load(text))
    return list(found.values())


async def open_sources(
    sources: Iterable[NamedOpener], clock: Clock, stack: AsyncExitStack
) -> dict[str, ExternalMetricSource]:
    """Return the sources by name; the stack closes them. Raises: PluginNotUsable if one cannot be opened."""
    opened: dict[str, ExternalMetricSource] = {}
    for one in sources:
        try:
            opened[one.name] = await stack.enter_async_context(one.open(clock))
        except Exception as error:
            raise PluginNotUsable(
                f"{SETTING}: {one.plugin} does not open: {type(error).__name__}: {error}"
            ) from error
    return opened


class NamedSources:
    """External metrics whose selector names a source come from it, all others from another source.

    One that does not answer is left alone for a while, and holds up no other.

    Args:
        named: Opened, by name.
        otherwise: Answers for the other metrics.
    """

    def __init__(
        self, named: Mapping[str, ExternalMetricSource], otherwise: ExternalMetricSource, clock: Clock
    ) -> None:
        self._named = {
            name: (source, GuardedSource(f"metrics {name}", clock, _PATIENCE))
            for name, source in named.items()
        }
        self._otherwise = otherwise

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Return the source's values; the query omits the label that names it. Raises MetricsError."""
        name, rest = _source_of(selector)
        if name not in self._named:
            return await self._otherwise.external_values(metric, namespace=namespace, selector=selector)
        source, guard = self._named[name]
        failed = f"unable to fetch metrics from {name}: {metric}: "
        try:
            found = await guard.ask(
                partial(source.external_values, metric, namespace=namespace, selector=rest), metric
            )
        except NoSeries as error:
            raise NoSeries(f"{failed}{error}") from error
        except MetricsError as error:
            raise MetricsError(f"{failed}{error}") from error
        if problem := _problem(found):
            raise MetricsError(f"{failed}{problem}")
        return found


def _problem(found: object) -> str:
    """Return what makes an answer one that nothing can be decided by."""
    if not isinstance(found, ExternalValues):
        return f"the answer is a {type(found).__name__}, not ExternalValues"
    if not len(found.milli):
        return "the answer has no series"
    numbers: tuple[object, ...] = (*found.milli, found.timestamp_ns)
    if not all(isinstance(one, int) and -_LARGEST <= one <= _LARGEST for one in numbers):
        return f"the answer has a value that is no whole number of 64 bits: {numbers}"
    return ""


def _source_of(selector: str) -> tuple[str, str]:
    """Return the source that a selector names, and the selector without it."""
    try:
        requirements = Selector.parse(selector).requirements if SOURCE in selector else ()
    except SelectorError:
        return "", selector
    named = [one for one in requirements if one.key == SOURCE and one.operator in {"=", "==", "in"}]
    if len(named) != 1 or len(named[0].values) != 1:
        return "", selector
    rest = ",".join(str(one) for one in requirements if one.key != SOURCE)
    return named[0].values[0], rest
