"""The three metric ports over HTTP: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io.

Source: the HPA controller's metrics client of Kubernetes v1.36 and k8s.io/metrics v0.36 (requests, choice
of the version, texts of errors). As there, what fails is not asked again before the next tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec
import numpy as np

from kubetide.cluster.decoding import decode
from kubetide.cluster.refusals import UNEXPECTED
from kubetide.objects.base import Quantities, json_name
from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, MetricsError, NotFound
from kubetide.ports.metrics import ExternalValues, ObjectValue, PodSamples, PodValues, ResourceUsage
from kubetide.units.quantity import Quantity
from kubetide.units.time import Duration, parse_duration, parse_rfc3339, seconds

T = TypeVar("T")

_RESOURCE_ROOT = "/apis/metrics.k8s.io/v1beta1"
_CUSTOM_GROUP = "custom.metrics.k8s.io"
_CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
_EXTERNAL_ROOT = "/apis/external.metrics.k8s.io/v1beta1"

_CUSTOM_FAILED = "unable to fetch metrics from custom metrics API: "
_EXTERNAL_FAILED = "unable to fetch metrics from external metrics API: "

_RECHECK = seconds(15)

_YEAR_ONE = "0001-01-01T00:00:00Z"
_FIRST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1


class Server(Protocol):
    """What answers: an HttpCluster."""

    async def get_raw(
        self, path: str, query: Mapping[str, str] | None = None, *, hasty: bool = False
    ) -> bytes:
        """Gives the body of an answer. Raises ApiError."""
        ...


PluralOf = Callable[[str, str], str | None]
"""Gives the plural of a kind by (apiVersion, kind), None for one that it does not know."""


def plurals_of(kinds: Iterable[Kind[Any]]) -> PluralOf:
    """Gives the plurals of these kinds, whatever their version: metrics are asked for by group and kind."""
    known = {(kind.group, kind.kind): kind.plural for kind in kinds}
    return lambda api_version, kind: known.get((api_version.rpartition("/")[0], kind))


class _Part(msgspec.Struct, rename=json_name, gc=False):
    """Base of what is read of an answer: the fields in use."""


class _Named(_Part, gc=False):
    name: str = ""
    namespace: str = ""


class _Container(_Part, gc=False):
    name: str = ""
    usage: Quantities | None = None


class _PodItem(_Part, gc=False):
    metadata: _Named
    timestamp: str | None = None
    window: str = "0s"
    containers: tuple[_Container, ...] | None = None


class _PodList(_Part, gc=False):
    items: tuple[_PodItem, ...] | None = None


class _Item(_Part, gc=False):
    """A value: of an object, or of a series of an external metric."""

    value: str | int | float
    timestamp: str | None = None
    described_object: _Named = msgspec.field(default_factory=_Named)


class _ItemList(_Part, gc=False):
    items: tuple[_Item, ...] | None = None


class _GroupVersion(_Part, gc=False):
    version: str = ""


class _Group(_Part, gc=False):
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)
    versions: tuple[_GroupVersion, ...] | None = None


class _Rows(NamedTuple):
    """Which pods a list had, so that the same pods come in the same tuples again."""

    namespaces: tuple[str, ...]
    names: tuple[str, ...]


class HttpMetrics:
    """The MetricSource port: usage of pods from metrics.k8s.io."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._rows: dict[tuple[str, str], _Rows] = {}

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        """Gives samples of all pods, of one namespace or (empty) of all, that match the selector.

        Raises MetricsError.
        """
        where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        query = {"labelSelector": labels} if labels else None
        asking = _ask(self._server, f"{_RESOURCE_ROOT}{where}/pods", query, _PodList, "pods.metrics.k8s.io")
        items = (await asking).items or ()
        rows = _Rows(
            tuple(item.metadata.namespace for item in items), tuple(item.metadata.name for item in items)
        )
        rows = self._rows[namespace, labels] = _same(self._rows.get((namespace, labels)), rows)
        containers = [container for item in items for container in item.containers or ()]
        usages = [container.usage or {} for container in containers]
        resources = sorted({"cpu", "memory", *(name for usage in usages for name in usage)})
        try:
            return PodSamples(
                namespaces=rows.namespaces,
                names=rows.names,
                timestamp_ns=np.array([_time(item.timestamp) for item in items], np.int64),
                window_ns=np.array([_window(item.window) for item in items], np.int64),
                first=np.cumsum([0, *(len(item.containers or ()) for item in items)], dtype=np.int64),
                containers=tuple(container.name for container in containers),
                usage={name: _usage(name, usages) for name in resources},
            )
        except ValueError as error:
            raise MetricsError(str(error)) from error


class HttpCustomMetrics:
    """The CustomMetricSource port: custom.metrics.k8s.io in the version that the server prefers.

    Args:
        server: Who is asked.
        clock: Time; it must be the running loop's.
        plural_of: Knows how the kinds of objects are called in paths.
        recheck: How long the choice of the version holds; upstream's sync period.
    """

    def __init__(
        self, server: Server, clock: Clock, *, plural_of: PluralOf, recheck: Duration = _RECHECK
    ) -> None:
        self._server = server
        self._clock = clock
        self._plural_of = plural_of
        self._recheck = recheck
        self._version = ""
        self._chosen_at = Duration(0)
        self._choosing = asyncio.Lock()

    async def pod_values(
        self, metric: str, *, namespace: str, pods: str = "", selector: str = ""
    ) -> PodValues:
        """Gives a metric of the pods that match; of a pod that comes twice the last value. Raises MetricsError."""
        query = {"labelSelector": pods, "metricLabelSelector": selector}
        found = await self._items(
            ("namespaces", namespace, "pods", "*", metric), query, f"pods.{_CUSTOM_GROUP} *"
        )
        if not found:
            raise MetricsError("no metrics returned from custom metrics API")
        last = {item.described_object.name: item for item in found}
        try:
            return PodValues(
                names=tuple(last),
                milli=np.array([_milli(item.value) for item in last.values()], np.int64),
                timestamp_ns=np.array([_time(item.timestamp) for item in last.values()], np.int64),
            )
        except ValueError as error:
            raise MetricsError(f"{_CUSTOM_FAILED}{error}") from error

    async def object_value(
        self, metric: str, *, namespace: str, api_version: str, kind: str, name: str, selector: str = ""
    ) -> ObjectValue:
        """Gives a metric of one object; of kind Namespace, ``name`` is the namespace that is measured.

        Raises: MetricsError.
        """
        group = api_version.rpartition("/")[0]
        path: tuple[str, ...]
        if (group, kind) == ("", "Namespace"):
            path, about = ("namespaces", name, "metrics", metric), f"metrics.{_CUSTOM_GROUP} {metric}"
        else:
            resource = self._resource_of(api_version, group, kind)
            path = ("namespaces", namespace, resource, name, metric)
            about = f"{resource}.{_CUSTOM_GROUP} {name}"
        found = await self._items(path, {"metricLabelSelector": selector}, about)
        if len(found) != 1:
            raise MetricsError(
                f"{_CUSTOM_FAILED}the custom metrics API server returned {len(found)} results when we asked "
                "for exactly one"
            )
        try:
            return ObjectValue(_milli(found[0].value), _time(found[0].timestamp))
        except ValueError as error:
            raise MetricsError(f"{_CUSTOM_FAILED}{error}") from error

    def _resource_of(self, api_version: str, group: str, kind: str) -> str:
        plural = self._plural_of(api_version, kind)
        if plural is None:
            full = f"{kind}.{group}" if group else kind
            raise MetricsError(
                f"{_CUSTOM_FAILED}unable to map kind {full} to resource: "
                f'no matches for kind "{kind}" in group "{group}"'
            )
        return f"{plural}.{group}" if group else plural

    async def _items(self, path: tuple[str, ...], query: Mapping[str, str], about: str) -> tuple[_Item, ...]:
        try:
            version = await self._chosen_version()
            parts = "/".join(quote(part, safe="*") for part in path)
            said = {name: text for name, text in query.items() if text}
            full = f"/apis/{_CUSTOM_GROUP}/{version}/{parts}"
            return (await _ask(self._server, full, said, _ItemList, about)).items or ()
        except MetricsError as error:
            raise MetricsError(f"{_CUSTOM_FAILED}{error}") from error

    async def _chosen_version(self) -> str:
        """Gives the version that the server prefers, or else its first that is known here."""
        async with self._choosing:
            if self._version and self._clock.monotonic() < self._chosen_at + self._recheck:
                return self._version
            try:
                group = decode(_Group, await self._server.get_raw(f"/apis/{_CUSTOM_GROUP}", hasty=True))
            except NotFound as error:
                raise MetricsError(f"no custom metrics API ({_CUSTOM_GROUP}) registered") from error
            except ApiError as error:
                raise MetricsError(str(error)) from error
            offered = [group.preferred_version.version, *(one.version for one in group.versions or ())]
            known = [version for version in offered if version in _CUSTOM_VERSIONS]
            if not known:
                raise MetricsError("no known available metric versions found")
            self._version, self._chosen_at = known[0], self._clock.monotonic()
            return self._version


class HttpExternalMetrics:
    """The ExternalMetricSource port: external.metrics.k8s.io."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Gives the series of a metric that the selector of its labels matches. Raises MetricsError."""
        path = f"{_EXTERNAL_ROOT}/namespaces/{quote(namespace, safe='')}/{quote(metric, safe='')}"
        query = {"labelSelector": selector} if selector else None
        try:
            found = await _ask(self._server, path, query, _ItemList, f"{metric}.external.metrics.k8s.io")
            values = [_milli(item.value) for item in found.items or ()]
            if values:
                return ExternalValues(values, _time((found.items or ())[0].timestamp))
        except (MetricsError, ValueError) as error:
            raise MetricsError(f"{_EXTERNAL_FAILED}{error}") from error
        raise MetricsError("no metrics returned from external metrics API")


async def _ask(server: Server, path: str, query: Mapping[str, str] | None, model: type[T], about: str) -> T:
    """Reads an answer. Raises MetricsError; one that the server did not explain says what was asked ``about``."""
    try:
        return decode(model, await server.get_raw(path, query, hasty=True))
    except ApiError as error:
        unexplained = any(cause.get("reason") == UNEXPECTED for cause in error.causes)
        raise MetricsError(f"{error} (get {about})" if unexplained else str(error)) from error


def _same(held: _Rows | None, rows: _Rows) -> _Rows:
    return held if held == rows and held is not None else rows


def _usage(name: str, usages: list[Quantities]) -> ResourceUsage:
    present = [name in usage for usage in usages]
    milli = [_milli(usage[name]) if there else 0 for usage, there in zip(usages, present, strict=True)]
    return ResourceUsage(np.array(milli, np.int64), np.array(present, np.bool_))


@lru_cache(maxsize=1 << 16, typed=True)
def _milli(value: str | float) -> int:
    return Quantity.parse(value).milli_value()


# All samples of one scrape have the same.
@lru_cache(maxsize=1 << 10)
def _time(text: str | None) -> int:
    """Nanoseconds of a timestamp, bounded by what they can hold; without one it is of year 1."""
    return min(max(parse_rfc3339(text or _YEAR_ONE), _FIRST_NS), _LAST_NS)


@lru_cache(maxsize=1 << 10)
def _window(text: str) -> int:
    return parse_duration(text or "0s")
