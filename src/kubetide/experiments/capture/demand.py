"""Usage of all HPA targets' pods in one tick of the HPA loop: in columns, as a week has tens of thousands of ticks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kubetide.experiments.capture.ticks import Tick
from kubetide.horizontal.facts.pods import IGNORED
from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant
from kubetide.units.vectors import BoolVector, Int64Vector

_CPU = "cpu"


class _Serving(NamedTuple):
    """The Running and Ready pods of all HPAs end to end.

    Attributes:
        made_of: The state and its counts of changes as of which this holds.
        hpas: (H,) keys.
        rows: (M,) rows of the pod table.
        owner: (M,) position of the HPA that takes the pod in.
        counts: (H,) pods.
        ready_since: (M,) ns.
        stays: (M,) whether the pod is not being deleted.
    """

    made_of: tuple[State, int, int]
    hpas: tuple[Key, ...]
    rows: Int64Vector
    owner: Int64Vector
    counts: Int64Vector
    ready_since: Int64Vector
    stays: BoolVector

    @classmethod
    def of(cls, state: State) -> Self:
        """Find them in the state as it is."""
        table, hpas = state.table, state.hpas
        pieces = [table.members_of(key) for key in hpas]
        owner = np.repeat(np.arange(len(hpas)), [len(piece) for piece in pieces])
        rows = np.concatenate([np.zeros(0, np.int64), *pieces])
        serves = table.serving[rows]
        rows, owner = rows[serves], owner[serves]
        counts = np.bincount(owner, minlength=len(hpas))
        stays = table.pod_state[rows] != IGNORED
        return cls(_made_of(state), hpas, rows, owner, counts, table.ready_since[rows], stays)

    def chosen_of(self, chosen: BoolVector) -> Int64Vector:
        """Return (H,) how many of the chosen pods each HPA has."""
        return self.counts if chosen.all() else np.bincount(self.owner[chosen], minlength=len(self.hpas))


class Demand:
    """Reads the usage from a state; caches which pods belong to which target."""

    def __init__(self) -> None:
        self._serving: _Serving | None = None

    def ticks(self, state: State, now: Instant) -> Iterator[Tick]:
        """Yield one tick for each of ``state.hpas``, in their order."""
        pods = self._serving
        if pods is None or pods.made_of != _made_of(state) or pods.hpas is not state.hpas:
            pods = self._serving = _Serving.of(state)
        there, milli = _cpu_of(state, pods.rows)
        samples = pods.chosen_of(there)
        middle = _middles(state, pods, there, samples, now)
        # Pods that have become Ready since then had no part in what was measured.
        took_part = pods.ready_since <= middle[pods.owner]
        served = pods.chosen_of(took_part & there)
        served = np.where(served > 0, served, samples)
        # Nor have pods that are being deleted any more; what others ask of them goes to those that stay.
        lacking = pods.chosen_of(took_part & ~there & pods.stays)
        amounts = np.bincount(pods.owner, milli * there, len(pods.hpas)).astype(np.float64)
        used = amounts * (served + lacking) / np.maximum(served, 1)
        columns = pods.counts, samples, used, middle
        for key, serving, known, amount, at in zip(
            pods.hpas, *(column.tolist() for column in columns), strict=True
        ):
            yield Tick(now, _replicas(state, key), serving, amount if known else None, Instant(at))


def _made_of(state: State) -> tuple[State, int, int]:
    return state, state.table.changes, state.table.members.version


def _replicas(state: State, key: Key) -> int | None:
    scale = state.scales.get(key)
    return None if scale is None or scale.error else scale.spec_replicas


def _cpu_of(state: State, rows: Int64Vector) -> tuple[BoolVector, Int64Vector]:
    """Return whether each pod has samples of its CPU, and their sum; of a pod's single containers where need be."""
    samples = state.samples
    whole = (_CPU, "")
    keys = [whole] if whole in samples.milli else [key for key in samples.milli if key[0] == _CPU]
    there, milli = np.full(len(rows), bool(keys)), np.zeros(len(rows), np.int64)
    for key in keys:
        there &= samples.has[key][rows]
        milli += samples.milli[key][rows]
    return there, milli


def _middles(
    state: State, pods: _Serving, there: BoolVector, samples: Int64Vector, now: Instant
) -> Int64Vector:
    """Return (HPAs,) the middle of the time that the samples of each cover; now where there are none."""
    found = np.full(len(samples), int(now), np.int64)
    counts = samples[samples > 0]
    sampled, whose = pods.rows[there], pods.owner[there]
    ends, windows = (
        _medians(values[sampled], whose, counts) for values in (state.samples.times, state.samples.windows)
    )
    found[samples > 0] = ends - windows // 2
    return found


def _medians(values: Int64Vector, whose: Int64Vector, counts: Int64Vector) -> Int64Vector:
    """Return the median of each HPA's values, end to end in the order of ``whose``: (HPAs that have any,)."""
    if len(values) and (values == values[0]).all():
        # Of samples that were taken together all are the same.
        return np.full(len(counts), int(float(values[0])), np.int64)
    ordered = values[np.lexsort((values, whose))].astype(np.float64)
    first = np.cumsum(counts) - counts
    middle: NDArray[np.float64] = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
    return middle.astype(np.int64)
