"""Checkpoints in upstream's format: read at the start, written after each pass.

The running window's peak of each live container is left out of what is written, so that it does not
count twice after a restart. Source: VPA 1.8, pkg/recommender/checkpoint and model, format ``v3``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from kubetide.objects.vpa import CheckpointStatus, HistogramCheckpoint
from kubetide.units.time import Instant, format_rfc3339
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.facts.views import CheckpointView, time_of
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.buckets import MEMORY_BUCKETS
from kubetide.vertical.recommender.usage.cells import Sums, summed
from kubetide.vertical.recommender.usage.containers import Containers
from kubetide.vertical.recommender.usage.histograms import NEVER, CheckpointError, Histograms

VERSION = "v3"
UNLOADED = "cannot load checkpoint for VPA"
"""How the problem of a checkpoint that could not be loaded begins."""
_AT_ONCE = 2048
"""Containers whose checkpoints are made together: their histograms are copied."""

_BUCKET_TEXTS = [str(number) for number in range(MEMORY_BUCKETS.buckets.count)]
_BUCKET_NUMBERS = {text: number for number, text in enumerate(_BUCKET_TEXTS)}
_GREATEST_SHARE = (1 << 32) - 1
_MOST_SAMPLES = (1 << 53) - 1

Cell = tuple[str, str, str, tuple[int, ...]]
"""Namespace, VPA, container, rows."""


def load_checkpoints(
    aggregates: Aggregates, views: Sequence[CheckpointView], now: Instant
) -> list[tuple[int, str]]:
    """Return, for each checkpoint, the row that it was loaded into, or -1 and why not, in upstream's words."""
    found: list[tuple[int, str]] = []
    good: list[CheckpointStatus] = []
    for view in views:
        status = view.status or CheckpointStatus()
        try:
            _check(aggregates, status)
        except CheckpointError as exc:
            found.append((-1, str(exc)))
            continue
        good.append(status)
        found.append((aggregates.add(now), ""))
    rows = np.array([row for row, _ in found if row >= 0], np.int64)
    _load(aggregates.cpu, rows, [status.cpu_histogram for status in good])
    _load(aggregates.memory, rows, [status.memory_histogram for status in good])
    aggregates.first[rows] = _times([status.first_sample_start for status in good])
    aggregates.last[rows] = _times([status.last_sample_start for status in good])
    counts = [min(max(status.total_samples_count, -_MOST_SAMPLES), _MOST_SAMPLES) for status in good]
    aggregates.count[rows] = np.array(counts, np.int64)
    return found


def _check(aggregates: Aggregates, status: CheckpointStatus) -> None:
    if status.version != VERSION:
        raise CheckpointError(f"unsupported checkpoint version {status.version}")
    for histograms, part in (
        (aggregates.memory, status.memory_histogram),
        (aggregates.cpu, status.cpu_histogram),
    ):
        weights = part.bucket_weights or {}
        histograms.check(_numbers(weights), part.total_weight)
        if weights and not (min(weights.values()) >= 0 and max(weights.values()) <= _GREATEST_SHARE):
            raise CheckpointError("checkpoint has a bucket with a weight outside of 0 to 4294967295")


def _load(histograms: Histograms, rows: Int64Vector, parts: Sequence[HistogramCheckpoint]) -> None:
    buckets: list[int] = []
    shares: list[int] = []
    lengths = []
    for part in parts:
        weights = part.bucket_weights or {}
        lengths.append(len(weights))
        buckets += _numbers(weights)
        shares += weights.values()
    histograms.load(
        rows,
        np.array(lengths, np.int64),
        np.array(buckets, np.int64),
        np.array(shares, np.int64),
        np.array([part.total_weight for part in parts], np.float64),
        _times([part.reference_timestamp for part in parts]),
    )


def _numbers(weights: Mapping[str, int]) -> list[int]:
    """Return the numbers of buckets. Raises: CheckpointError."""
    try:
        return [_BUCKET_NUMBERS[bucket] for bucket in weights]
    except KeyError:
        pass
    try:
        return [int(bucket) for bucket in weights]
    except ValueError as exc:
        raise CheckpointError(f"checkpoint has a bucket that is no number: {exc}") from exc


def _times(texts: Sequence[str | None]) -> Int64Vector:
    times = map(time_of, texts)
    return np.array([NEVER if time is None else time for time in times], np.int64)


def checkpoints_of(
    aggregates: Aggregates, containers: Containers, cells: Sequence[Cell], now: Instant
) -> Iterator[CheckpointView]:
    """Yield the checkpoint of each cell, in order."""
    live = _live_by_aggregate(containers, len(aggregates.count))
    for begin in range(0, len(cells), _AT_ONCE):
        some = cells[begin : begin + _AT_ONCE]
        rows = [cell[3] for cell in some]
        sums = summed(aggregates, rows)
        _without_running_windows(containers, sums, rows, now, live)
        yield from _block(sums, some, now)


def _block(sums: Sums, cells: Sequence[Cell], now: Instant) -> Iterator[CheckpointView]:
    cpu, memory = _parts(sums.cpu), _parts(sums.memory)
    written = format_rfc3339(now)
    for number, (namespace, vpa, container, _) in enumerate(cells):
        status = CheckpointStatus(
            last_update_time=written,
            version=VERSION,
            cpu_histogram=cpu[number],
            memory_histogram=memory[number],
            first_sample_start=_text(int(sums.first[number])),
            last_sample_start=_text(int(sums.last[number])),
            total_samples_count=int(sums.count[number]),
        )
        yield CheckpointView(namespace, f"{vpa}-{container}", vpa, container, status)


def _live_by_aggregate(
    containers: Containers, aggregates: int
) -> tuple[Int64Vector, Int64Vector, Int64Vector]:
    """Return the rows of live containers in order of aggregate, and where those of each begin and end."""
    aggregate = containers.aggregate
    rows = np.flatnonzero(aggregate >= 0)
    rows = rows[np.argsort(aggregate[rows], kind="stable")]
    numbers = np.arange(aggregates)
    begins = np.searchsorted(aggregate[rows], numbers)
    ends = np.searchsorted(aggregate[rows], numbers, side="right")
    return rows, begins, ends


def _without_running_windows(
    containers: Containers,
    sums: Sums,
    rows: Sequence[tuple[int, ...]],
    now: Instant,
    live: tuple[Int64Vector, Int64Vector, Int64Vector],
) -> None:
    in_order, begins, ends = live
    counts = [len(one) for one in rows]
    cells = np.repeat(np.arange(len(rows)), counts)
    sources = np.fromiter((row for one in rows for row in one), np.int64, len(cells))
    number = ends[sources] - begins[sources]
    into = np.repeat(cells, number)
    if len(into) == 0:
        return
    offsets = np.arange(len(into)) - np.repeat(np.cumsum(number) - number, number)
    found = in_order[np.repeat(begins[sources], number) + offsets]
    running = containers.window_end[found] > now
    into, found = into[running], found[running]
    buckets = MEMORY_BUCKETS.find(containers.current_peaks(found))
    sums.memory.subtract_many(into, buckets, 1.0, containers.window_end[found])


def _parts(histograms: Histograms) -> list[HistogramCheckpoint]:
    rows = np.arange(len(histograms.total))
    shares = histograms.shares(rows)
    number, bucket = np.nonzero(shares)
    share = shares[number, bucket].tolist()
    texts = _BUCKET_TEXTS
    names = [texts[one] for one in bucket.tolist()]
    bounds = np.searchsorted(number, np.arange(len(rows) + 1)).tolist()
    references = histograms.reference.tolist()
    totals = histograms.total.tolist()
    return [
        HistogramCheckpoint(
            reference_timestamp=_text(references[row]),
            bucket_weights=dict(zip(names[begin:end], share[begin:end], strict=True)) or None,
            total_weight=totals[row],
        )
        for row, (begin, end) in enumerate(pairwise(bounds))
    ]


def _text(time: int) -> str | None:
    return None if time == NEVER else format_rfc3339(Instant(time))
