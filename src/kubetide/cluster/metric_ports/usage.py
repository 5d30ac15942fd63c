"""The MetricSource port over HTTP: usage of pods from metrics.k8s.io.

An answer for a big cluster has tens of megabytes. It is read in pieces between which other tasks run, and
each is reduced to columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np

from kubetide.cluster.decoding import decode, decoder_of
from kubetide.cluster.metric_ports.metric_answers import Named, Part, Server, ask, milli_of, time_of
from kubetide.cluster.metric_ports.quantity_columns import milli_column
from kubetide.cluster.refusals import UNREADABLE
from kubetide.objects.base import Quantities
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, MetricsError
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.time import ZERO, parse_duration
from kubetide.units.vectors import Int64Vector

_ROOT = "/apis/metrics.k8s.io/v1beta1"
_MOST_QUESTIONS = 1 << 12
_AT_ONCE = 4_000
"""Pods that are read before other tasks have a turn: some 8 ms, and 2 MB that are free again after it."""


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


class _PlainUsage(Part, gc=False, forbid_unknown_fields=True):
    """What metrics-server sends: both resources as texts, and no other."""

    cpu: str
    memory: str


class _PlainContainer(Part, gc=False):
    name: str
    usage: _PlainUsage


class _PlainItem(Part, gc=False):
    metadata: Named
    containers: tuple[_PlainContainer, ...]
    timestamp: str | None = None
    window: str = "0s"


class _PlainList(Part, gc=False):
    items: tuple[_PlainItem, ...]


class _Borders(Part, gc=False):
    """A list whose items are not read yet."""

    items: tuple[msgspec.Raw, ...] | None = None


class _Rows(NamedTuple):
    """Which pods a list had, so that the same pods come in the same tuples again."""

    namespaces: tuple[str, ...]
    names: tuple[str, ...]


_NOTHING = msgspec.Raw()


class _Piece(NamedTuple):
    """Some pods of an answer, as ``PodSamples`` has them; ``counts`` are the containers of each pod."""

    rows: _Rows
    times: Int64Vector
    windows: Int64Vector
    counts: Int64Vector
    containers: list[str]
    usage: dict[str, ResourceUsage]


class HttpMetrics:
    """The MetricSource port over an API server.

    Args:
        server: Who is asked.
        clock: Time; it must be the running loop's.
    """

    def __init__(self, server: Server, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._rows: dict[tuple[str, str], _Rows] = {}

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        """Return samples of all pods, of one namespace or (empty) of all, that match the selector.

        Raises MetricsError.
        """
        where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        query = {"labelSelector": labels} if labels else None
        asking = ask(self._server, f"{_ROOT}{where}/pods", query, _Borders, "pods.metrics.k8s.io")
        items = list((await asking).items or ())
        known = self._rows.get((namespace, labels), _Rows((), ()))
        pieces: list[_Piece] = []
        for start in range(0, max(len(items), 1), _AT_ONCE):
            if pieces:
                await self._clock.sleep(ZERO)
            at = slice(start, min(start + _AT_ONCE, len(items)))
            pieces.append(_piece(items[at], _Rows(known.namespaces[at], known.names[at])))
            # The memory of what has been read is free for what comes next.
            items[at] = [_NOTHING] * (at.stop - at.start)
        del items  # and with it the body
        rows = _Rows(
            tuple(chain.from_iterable(piece.rows.namespaces for piece in pieces)),
            tuple(chain.from_iterable(piece.rows.names for piece in pieces)),
        )
        return _joined(self._cached(namespace, labels, rows), pieces)

    def _cached(self, namespace: str, labels: str, rows: _Rows) -> _Rows:
        """Return the rows of the same question before, if they are equal; the oldest questions are forgotten."""
        held = self._rows.pop((namespace, labels), rows)
        rows = held if held == rows else rows
        self._rows[namespace, labels] = rows
        if len(self._rows) > _MOST_QUESTIONS:
            del self._rows[next(iter(self._rows))]
        return rows


def _piece(items: Sequence[msgspec.Raw], known: _Rows) -> _Piece:
    """Read some items; where their pods are the ``known`` ones, these stand for them. Raises: MetricsError."""
    body = b'{"items":[%b]}' % b",".join(items)
    try:
        try:
            plain = decoder_of(_PlainList).decode(body).items
        except UNREADABLE:
            # Other resources, numbers in place of texts, or what cannot be read at all.
            piece = _any_piece(decode(_PodList, body).items or ())
        else:
            piece = _plain_piece(plain)
        return piece._replace(rows=known) if piece.rows == known else piece
    except (ValueError, ApiError) as error:
        raise MetricsError(str(error)) from error


def _plain_piece(items: Sequence[_PlainItem]) -> _Piece:
    containers = list(chain.from_iterable([item.containers for item in items]))
    there = np.ones(len(containers), np.bool_)
    return _Piece(
        *_of_pods(items),
        containers=[intern(container.name) for container in containers],
        usage={
            "cpu": ResourceUsage(milli_column([one.usage.cpu for one in containers]), there),
            "memory": ResourceUsage(milli_column([one.usage.memory for one in containers]), there),
        },
    )


def _any_piece(items: Sequence[_PodItem]) -> _Piece:
    containers = [container for item in items for container in item.containers or ()]
    usages = [container.usage or {} for container in containers]
    resources = {"cpu", "memory", *(name for usage in usages for name in usage)}
    return _Piece(
        *_of_pods(items),
        containers=[container.name for container in containers],
        usage={name: _usage(name, usages) for name in resources},
    )


def _of_pods(
    items: Sequence[_PlainItem] | Sequence[_PodItem],
) -> tuple[_Rows, Int64Vector, Int64Vector, Int64Vector]:
    """Return what a piece has by pod."""
    rows = _Rows(
        tuple([intern(item.metadata.namespace) for item in items]),
        tuple([item.metadata.name for item in items]),
    )
    return (
        rows,
        np.array([time_of(item.timestamp) for item in items], np.int64),
        np.array([_window(item.window) for item in items], np.int64),
        np.array([len(item.containers or ()) for item in items], np.int64),
    )


def _usage(name: str, usages: Sequence[Quantities]) -> ResourceUsage:
    present = [name in usage for usage in usages]
    milli = [milli_of(usage[name]) if there else 0 for usage, there in zip(usages, present, strict=True)]
    return ResourceUsage(np.array(milli, np.int64), np.array(present, np.bool_))


def _joined(rows: _Rows, pieces: Sequence[_Piece]) -> PodSamples:
    """Put the pieces end to end; at least one."""
    first = np.zeros(len(rows.names) + 1, np.int64)
    np.cumsum(np.concatenate([piece.counts for piece in pieces]), out=first[1:])
    return PodSamples(
        namespaces=rows.namespaces,
        names=rows.names,
        timestamp_ns=np.concatenate([piece.times for piece in pieces]),
        window_ns=np.concatenate([piece.windows for piece in pieces]),
        first=first,
        containers=tuple(chain.from_iterable(piece.containers for piece in pieces)),
        usage={
            name: _column(name, pieces) for name in sorted({name for one in pieces for name in one.usage})
        },
    )


def _column(name: str, pieces: Sequence[_Piece]) -> ResourceUsage:
    """Return one resource of all pieces; a piece without it has it nowhere."""
    columns = []
    for piece in pieces:
        size = len(piece.containers)
        none = ResourceUsage(np.zeros(size, np.int64), np.zeros(size, np.bool_))
        columns.append(piece.usage.get(name, none))
    return ResourceUsage(
        np.concatenate([column.milli for column in columns]),
        np.concatenate([column.present for column in columns]),
    )


# They differ by milliseconds.
@lru_cache(maxsize=1 << 15)
def _window(text: str) -> int:
    return parse_duration(text or "0s")
