"""Samples of the resource metrics API, aligned with the rows of the pods.

An answer covers the whole cluster, or one HPA's namespace and selector (as upstream asks). Samples
of pods that are not in the cache are *unmatched*: upstream counts them where they come in the answer
to the HPA's own question; in an answer for the whole cluster nothing says whose they are, and they
are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.views import YEAR_ONE
from kubetide.horizontal.metrics.types import SampleKey
from kubetide.objects.meta import Key
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import PodSamples
from kubetide.units.vectors import BoolVector, Int64Vector

ONE_ZERO: Int64Vector = np.zeros(1, np.int64)


class SampleColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """Usage of one resource: thousandths by sample, and which samples lack it."""

    resource: str
    container: str
    milli: Int64Vector
    missing: list[int] = []

    @property
    def key(self) -> SampleKey:
        return self.resource, self.container


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of the resource metrics API, reduced to what decisions read.

    Attributes:
        hpa: Whose question it answers; None for the whole cluster or a whole namespace.
        error: Why there are no samples, as conditions quote it.
        pods: Namespaces and names by sample; None: those of the last answer for the whole cluster.
        times: By sample, ns; or one entry that holds for all.
        windows: Likewise.
        columns: Usage by resource and container.
    """

    hpa: Key | None = None
    error: str = ""
    pods: tuple[Sequence[str], Sequence[str]] | None = None
    times: Int64Vector = ONE_ZERO
    windows: Int64Vector = ONE_ZERO
    columns: tuple[SampleColumn, ...] = ()


class Sample(NamedTuple):
    """One pod's sample of one resource."""

    milli: int
    time: int
    window: int


def checked(samples: PodSamples) -> PodSamples:
    """Return the samples if their columns are consistent. Raises: MetricsError."""
    pods, containers = len(samples.names), len(samples.containers)
    if not (
        len(samples.namespaces) == len(samples.timestamp_ns) == len(samples.window_ns) == pods
        and len(samples.first) == pods + 1
        and samples.first[-1] == containers
        and all(len(one.milli) == len(one.present) == containers for one in samples.usage.values())
    ):
        raise MetricsError(f"the samples of {pods} pods have columns of other lengths")
    return samples


def answer_of(samples: PodSamples, keys: Sequence[SampleKey], *, hpa: Key | None, same_pods: bool) -> Answer:
    """Reduce an answer to the resources in use."""
    return Answer(
        hpa=hpa,
        pods=None if same_pods else (samples.namespaces, samples.names),
        times=np.maximum(_one_if_equal(samples.timestamp_ns), YEAR_ONE),
        windows=_one_if_equal(samples.window_ns),
        columns=tuple(_column(samples, key) for key in keys),
    )


def _one_if_equal(values: Int64Vector) -> Int64Vector:
    return values[:1] if len(values) and not np.count_nonzero(values != values[0]) else values


def _column(samples: PodSamples, key: SampleKey) -> SampleColumn:
    """Sum a resource over the pod's containers, or take the one container.

    A pod lacks the sample if a container that is listed lacks the resource, if none is listed, or
    if the container asked for is not. Source: horizontal controller v1.36, resource metrics client.
    """
    resource, container = key
    pods = len(samples.names)
    usage = samples.usage.get(resource)
    if usage is None:
        return SampleColumn(resource, container, np.zeros(pods, np.int64), list(range(pods)))
    milli, present = usage.milli, usage.present
    selected: BoolVector | None = None
    if container:
        selected = np.fromiter(
            (name == container for name in samples.containers), np.bool_, len(samples.containers)
        )
        milli = np.where(selected, milli, 0)
    if selected is None and len(milli) == pods == np.count_nonzero(present) and _one_each(samples.first):
        return SampleColumn(resource, container, milli)
    total = _segment_sums(milli, samples.first)
    relevant = np.ones(len(present), np.bool_) if selected is None else selected
    counted = _segment_sums(relevant, samples.first)
    absent = _segment_sums(relevant & ~present, samples.first)
    lacking = (counted == 0) | (absent > 0)
    return SampleColumn(resource, container, total, np.nonzero(lacking)[0].tolist())


def _one_each(first: Int64Vector) -> bool:
    return not np.count_nonzero(first[1:] - first[:-1] != 1)


def _segment_sums(values: Int64Vector | BoolVector, first: Int64Vector) -> Int64Vector:
    """Return (P,) sums of ``first[i]:first[i + 1]``, exact in int64 and 0 for empty segments."""
    running = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=running[1:], dtype=np.int64)
    return running[first[1:]] - running[first[:-1]]


class SampleTable:
    """The samples of this tick by pod row; samples without a pod row and errors by HPA.

    ``only``: of answers for the whole cluster just the samples of this HPA's pods are taken, where no other is read.
    """

    def __init__(self, only: Key | None = None) -> None:
        self._only = only
        self.cluster_error: str | None = None
        self.errors: dict[Key, str] = {}
        self.unmatched: dict[Key, dict[str, dict[SampleKey, Sample]]] = {}
        self.sample_counts: dict[Key, int] = {}
        """Number of samples in the answers to HPAs' own questions."""
        self.seen: BoolVector = np.zeros(0, np.bool_)
        self.times: Int64Vector = np.zeros(0, np.int64)
        self.windows: Int64Vector = np.zeros(0, np.int64)
        self.milli: dict[SampleKey, Int64Vector] = {}
        self.has: dict[SampleKey, BoolVector] = {}
        self.version = 0
        """Changes with everything but the times and windows of samples."""
        self._last: tuple[SampleColumn, ...] | None = None
        """Of the last answer, where that was one for the whole cluster."""
        self._pods: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._rows: Int64Vector = np.zeros(0, np.int64)
        self._known: Int64Vector | None = None
        self._rows_version: tuple[int, int] | None = None

    def take(self, answers: Sequence[Answer], table: PodTable) -> None:
        """Replace the last tick's answers with this tick's."""
        size = table.capacity
        if len(self.seen) == size and self._are_as_before(answers, table):
            self._lay_times(answers[0], self._rows, self._known)
            return
        self.version += 1
        self._last = answers[0].columns if len(answers) == 1 and _is_whole(answers[0]) else None
        if len(self.seen) != size:
            self.seen = np.zeros(size, np.bool_)
            self.times, self.windows = np.zeros(size, np.int64), np.zeros(size, np.int64)
            self.milli, self.has = {}, {}
        self.seen[:] = False
        for has in self.has.values():
            has[:] = False
        self.errors, self.unmatched, self.sample_counts, self.cluster_error = {}, {}, {}, None
        for answer in answers:
            if answer.hpa is None:
                self._take_cluster(answer, table)
            else:
                self._take_own(answer.hpa, answer, table)

    def take_beside(self, answers: Sequence[Answer], table: PodTable) -> None:
        """Replace the answers to the own questions of some HPAs; samples of the others stay."""
        self.version += 1
        self._last = None
        self.cluster_error = None
        self._grow(table.capacity)
        for answer in answers:
            assert answer.hpa is not None, "each answers the question of one HPA"
            rows = table.members_of(answer.hpa)
            self.seen[rows] = False
            for has in self.has.values():
                has[rows] = False
            for known in (self.errors, self.unmatched, self.sample_counts):
                known.pop(answer.hpa, None)
            self._take_own(answer.hpa, answer, table)

    def _grow(self, size: int) -> None:
        more = size - len(self.seen)
        if more:
            self.seen = np.pad(self.seen, (0, more))
            self.times, self.windows = np.pad(self.times, (0, more)), np.pad(self.windows, (0, more))
            self.milli = {key: np.pad(one, (0, more)) for key, one in self.milli.items()}
            self.has = {key: np.pad(one, (0, more)) for key, one in self.has.items()}

    def _are_as_before(self, answers: Sequence[Answer], table: PodTable) -> bool:
        """Return whether it is one answer about the same pods, which says the same of them as the last."""
        if self._last is None or len(answers) != 1 or not _is_whole(answers[0]):
            return False
        answer, last = answers[0], self._last
        if answer.pods is not None or self._rows_version != self._version_in(table):
            return False
        return len(answer.columns) == len(last) and all(
            one.key == other.key
            and one.missing == other.missing
            and len(one.milli) == len(other.milli)
            and not np.count_nonzero(one.milli != other.milli)
            for one, other in zip(answer.columns, last, strict=True)
        )

    def _version_in(self, table: PodTable) -> tuple[int, int]:
        return table.version, 0 if self._only is None else table.members.version

    def error_of(self, hpa: Key) -> str | None:
        """Return why the HPA has no samples, or None."""
        return self.errors.get(hpa, self.cluster_error)

    def sample_at(self, row: int, key: SampleKey) -> Sample | None:
        """Return the sample of a pod, or None."""
        has = self.has.get(key)
        if has is None or not has[row]:
            return None
        return Sample(int(self.milli[key][row]), int(self.times[row]), int(self.windows[row]))

    def samples_at(self, rows: Int64Vector, key: SampleKey) -> list[Sample | None]:
        """Return the sample of each pod, or None."""
        has = self.has.get(key)
        if has is None:
            return [None] * len(rows)
        columns = (one[rows].tolist() for one in (has, self.milli[key], self.times, self.windows))
        return [
            Sample(milli, time, window) if is_there else None
            for is_there, milli, time, window in zip(*columns, strict=True)
        ]

    def pods(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return namespaces and names of the last answer for the whole cluster."""
        return self._pods

    def remember_pods(self, pods: tuple[Sequence[str], Sequence[str]]) -> None:
        """Store the order of the samples, for answers that do not repeat it."""
        self._pods = pods
        self._rows_version = None

    def _take_cluster(self, answer: Answer, table: PodTable) -> None:
        if answer.error:
            self.cluster_error = answer.error
            return
        if answer.pods is not None:
            self.remember_pods(answer.pods)
        version = self._version_in(table)
        if self._rows_version != version:
            only, pods = self._only, self._pods
            rows = table.rows.of(*pods) if only is None else table.rows_in(only, *pods)
            self._rows = rows
            known = np.nonzero(self._rows >= 0)[0]
            self._known = None if len(known) == len(self._rows) else known
            self._rows_version = version
        self._lay(answer, self._rows, self._known)

    def _take_own(self, hpa: Key, answer: Answer, table: PodTable) -> None:
        if answer.error:
            self.errors[hpa] = answer.error
            return
        names = answer.pods[1] if answer.pods else ()
        self.sample_counts[hpa] = len(names)
        members = {table.view(row).name: row for row in table.members_of(hpa).tolist()}
        rows = np.array([members.get(name, -1) for name in names], np.int64)
        self._lay(answer, rows, np.nonzero(rows >= 0)[0])
        unmatched: dict[str, dict[SampleKey, Sample]] = {}
        for index, name in enumerate(names):
            if name not in members:
                unmatched.setdefault(name, {}).update(_samples_at(answer, index))
        if unmatched:
            self.unmatched[hpa] = unmatched

    def _lay(self, answer: Answer, rows: Int64Vector, known: Int64Vector | None) -> None:
        """Write an answer into the columns; ``known`` are the samples of known pods, None for all.

        Of several samples of a pod the last one with the resource holds: that is what is left of them.
        """
        size = len(self.seen)
        target = self._lay_times(answer, rows, known)
        self.seen[target] = True
        for column in answer.columns:
            key = column.key
            if key not in self.milli:
                self.milli[key] = np.zeros(size, np.int64)
                self.has[key] = np.zeros(size, np.bool_)
            having, milli = target, _pick(column.milli, known)
            if column.missing:
                has = rows >= 0
                has[column.missing] = False
                having, milli = rows[has], _pick(column.milli, np.nonzero(has)[0])
            self.milli[key][having] = milli
            self.has[key][having] = True

    def _lay_times(self, answer: Answer, rows: Int64Vector, known: Int64Vector | None) -> Int64Vector:
        """Write the times of an answer, and return the rows that it is about."""
        target = rows if known is None else rows[known]
        self.times[target] = _pick(answer.times, known)
        self.windows[target] = _pick(answer.windows, known)
        return target


def _is_whole(answer: Answer) -> bool:
    """Return whether it is about the pods of the whole cluster."""
    return answer.hpa is None and not answer.error


def _pick(values: Int64Vector, known: Int64Vector | None) -> Int64Vector:
    return values if known is None or len(values) == 1 else values[known]


def _samples_at(answer: Answer, index: int) -> dict[SampleKey, Sample]:
    def of(values: Int64Vector) -> int:
        return int(values[0] if len(values) == 1 else values[index])

    return {
        column.key: Sample(int(column.milli[index]), of(answer.times), of(answer.windows))
        for column in answer.columns
        if index not in column.missing
    }
