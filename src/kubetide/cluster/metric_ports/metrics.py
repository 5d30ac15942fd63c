"""The ports of custom and external metrics over HTTP.

Source: the HPA controller's metrics client of Kubernetes v1.36 and k8s.io/metrics v0.36 (requests, choice
of the version, texts of errors).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from kubetide.cluster.decoding import decode
from kubetide.cluster.metric_ports.metric_answers import Named, Part, Server, ask, milli_of, time_of
from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, MetricsError, NoSeries, NotFound, Unavailable
from kubetide.ports.metrics import ExternalValues, ObjectValue, PodValues
from kubetide.units.time import Duration, seconds

_CUSTOM_GROUP = "custom.metrics.k8s.io"
_CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
_EXTERNAL_ROOT = "/apis/external.metrics.k8s.io/v1beta1"

_CUSTOM_FAILED = "unable to fetch metrics from custom metrics API: "
_NO_VERSION = "no known available metric versions found"
_EXTERNAL_FAILED = "unable to fetch metrics from external metrics API: "

_RECHECK = seconds(15)


PluralOf = Callable[[str, str], str | None]
"""Return the plural of a kind by (apiVersion, kind), None for an unknown kind."""


def plurals_of(kinds: Iterable[Kind[Any]]) -> PluralOf:
    """Return the plurals of these kinds, whatever their version: metrics are asked for by group and kind."""
    known = {(kind.group, kind.kind): kind.plural for kind in kinds}
    return lambda api_version, kind: known.get((api_version.rpartition("/")[0], kind))


class _Item(Part, gc=False):
    """A value: of an object, or of a series of an external metric."""

    value: str | int | float
    timestamp: str | None = None
    described_object: Named = msgspec.field(default_factory=Named)
    metric_labels: dict[str, str] | None = None


class _ItemList(Part, gc=False):
    items: tuple[_Item, ...] | None = None


class _GroupVersion(Part, gc=False):
    version: str = ""


class _Group(Part, gc=False):
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)
    versions: tuple[_GroupVersion, ...] | None = None


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
        """Return a metric of the pods that match; of a pod that comes twice the last value. Raises MetricsError."""
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
                milli=np.array([milli_of(item.value) for item in last.values()], np.int64),
                timestamp_ns=np.array([time_of(item.timestamp) for item in last.values()], np.int64),
            )
        except ValueError as error:
            raise MetricsError(f"{_CUSTOM_FAILED}{error}") from error

    async def object_value(
        self, metric: str, *, namespace: str, api_version: str, kind: str, name: str, selector: str = ""
    ) -> ObjectValue:
        """Return a metric of one object; of kind Namespace, ``name`` is the namespace that is measured.

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
            return ObjectValue(milli_of(found[0].value), time_of(found[0].timestamp))
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
            try:
                return (await ask(self._server, full, said, _ItemList, about)).items or ()
            except MetricsError as error:
                if isinstance(error.__cause__, Unavailable) and not await self._is_reached(version):
                    raise MetricsError(_NO_VERSION) from error
                raise
        except MetricsError as error:
            raise MetricsError(f"{_CUSTOM_FAILED}{error}") from error

    async def _is_reached(self, version: str) -> bool:
        """Return whether discovery gets an answer: a version whose adapter cannot be reached counts as none."""
        try:
            await self._server.get_raw(f"/apis/{_CUSTOM_GROUP}/{version}", hasty=True)
        except Unavailable:
            return False
        except ApiError:
            return True
        return True

    async def _chosen_version(self) -> str:
        """Return the version that the server prefers, or else its first that is known here."""
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
                raise MetricsError(_NO_VERSION)
            self._version, self._chosen_at = known[0], self._clock.monotonic()
            return self._version


class HttpExternalMetrics:
    """The ExternalMetricSource port: external.metrics.k8s.io."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def external_values(self, metric: str, *, namespace: str, selector: str = "") -> ExternalValues:
        """Return the series of a metric that the selector of its labels matches. Raises MetricsError."""
        path = f"{_EXTERNAL_ROOT}/namespaces/{quote(namespace, safe='')}/{quote(metric, safe='')}"
        query = {"labelSelector": selector} if selector else None
        try:
            found = await ask(self._server, path, query, _ItemList, f"{metric}.external.metrics.k8s.io")
            items = found.items or ()
            values = [milli_of(item.value) for item in items]
            times = [time_of(item.timestamp) for item in items]
            if values:
                labels = [item.metric_labels or {} for item in items]
                # A series without a time says nothing of its age.
                oldest = min((time for time in times if time > 0), default=times[0])
                return ExternalValues(values, times[0], labels, None if oldest == times[0] else oldest)
        except (MetricsError, ValueError) as error:
            raise MetricsError(f"{_EXTERNAL_FAILED}{error}") from error
        raise NoSeries("no metrics returned from external metrics API")
