"""The MetricSource port over HTTP: usage of pods from metrics.k8s.io."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from kubetide.cluster.metric_answers import Named, Part, Server, ask, milli_of, time_of
from kubetide.objects.base import Quantities
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.time import parse_duration

_ROOT = "/apis/metrics.k8s.io/v1beta1"
_MOST_QUESTIONS = 1 << 12


class _Container(Part, gc=False):
    name: str = ""
    usage: Quantities | None = None


class _PodItem(Part, gc=False):
    metadata: Named
    timestamp: str | None = None
    window: str = "0s"
    containers: tuple[_Container, ...] | None = None


class _PodList(Part, gc=False):
    items: tuple[_PodItem, ...] | None = None


class _Rows(NamedTuple):
    """Which pods a list had, so that the same pods come in the same tuples again."""

    namespaces: tuple[str, ...]
    names: tuple[str, ...]


class HttpMetrics:
    """The MetricSource port over an API server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._rows: dict[tuple[str, str], _Rows] = {}

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        """Gives samples of all pods, of one namespace or (empty) of all, that match the selector.

        Raises MetricsError.
        """
        where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        query = {"labelSelector": labels} if labels else None
        asking = ask(self._server, f"{_ROOT}{where}/pods", query, _PodList, "pods.metrics.k8s.io")
        items = (await asking).items or ()
        rows = _Rows(
            tuple(item.metadata.namespace for item in items), tuple(item.metadata.name for item in items)
        )
        rows = self._kept(namespace, labels, rows)
        containers = [container for item in items for container in item.containers or ()]
        usages = [container.usage or {} for container in containers]
        resources = sorted({"cpu", "memory", *(name for usage in usages for name in usage)})
        try:
            return PodSamples(
                namespaces=rows.namespaces,
                names=rows.names,
                timestamp_ns=np.array([time_of(item.timestamp) for item in items], np.int64),
                window_ns=np.array([_window(item.window) for item in items], np.int64),
                first=np.cumsum([0, *(len(item.containers or ()) for item in items)], dtype=np.int64),
                containers=tuple(container.name for container in containers),
                usage={name: _usage(name, usages) for name in resources},
            )
        except ValueError as error:
            raise MetricsError(str(error)) from error

    def _kept(self, namespace: str, labels: str, rows: _Rows) -> _Rows:
        """Gives the rows of the same question before, if they are equal; the oldest questions are forgotten."""
        held = self._rows.pop((namespace, labels), rows)
        rows = held if held == rows else rows
        self._rows[namespace, labels] = rows
        if len(self._rows) > _MOST_QUESTIONS:
            del self._rows[next(iter(self._rows))]
        return rows


def _usage(name: str, usages: list[Quantities]) -> ResourceUsage:
    present = [name in usage for usage in usages]
    milli = [milli_of(usage[name]) if there else 0 for usage, there in zip(usages, present, strict=True)]
    return ResourceUsage(np.array(milli, np.int64), np.array(present, np.bool_))


# They differ by milliseconds.
@lru_cache(maxsize=1 << 15)
def _window(text: str) -> int:
    return parse_duration(text or "0s")
