"""What the pods of all HPAs' targets used in one tick of the HPA loop: in columns, as a week has tens of thousands of ticks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubetide.experiments.capture.ticks import Tick
from kubetide.horizontal.facts.pods import IGNORED
from kubetide.horizontal.facts.views import Key
from kubetide.horizontal.state import State
from kubetide.ports.metrics import BoolVector, Int64Vector
from kubetide.units.time import Instant

_CPU = "cpu"


class _Members(NamedTuple):
    """The pods of all HPAs end to end, as long as ``version`` is that of the state.

    Attributes:
        hpas: (H,) keys.
        rows: (M,) rows of the pod table.
        owner: (M,) position of the HPA that takes the pod in.
    """

    version: int
    hpas: tuple[Key, ...]
    rows: Int64Vector
    owner: Int64Vector


class Demand:
    """Reads the demand off a state; holds which pods are whose while they are the same."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._members = _Members(-1, (), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def ticks(self, state: State, now: Instant) -> Iterator[Tick]:
        """Yield one tick for each of ``state.hpas``, in their order."""
        members = self._members_of(state)
        count, table = len(members.hpas), state.table
        serves = table.serving[members.rows]
        rows, owner = members.rows[serves], members.owner[serves]
        there, milli = _cpu_of(state, rows)
        sampled, whose = rows[there], owner[there]
        samples = np.bincount(whose, minlength=count)
        middle = _middles(state, sampled, whose, samples, now)
        # Pods that have become Ready since then had no part in what was measured.
        took_part = table.ready_since[rows] <= middle[owner]
        served = np.bincount(owner[took_part & there], minlength=count)
        served = np.where(served > 0, served, samples)
        # Nor have pods that are being deleted any more; what others ask of them goes to those that stay.
        lacks = took_part & ~there & (table.standing[rows] != IGNORED)
        lacking = np.bincount(owner[lacks], minlength=count)
        amounts = np.bincount(whose, milli[there], count).astype(np.float64)
        used = amounts * (served + lacking) / np.maximum(served, 1)
        columns = np.bincount(owner, minlength=count), samples, used, middle
        for key, serving, known, amount, at in zip(
            members.hpas, *(column.tolist() for column in columns), strict=True
        ):
            yield Tick(now, _replicas(state, key), serving, amount if known else None, Instant(at))

    def _members_of(self, state: State) -> _Members:
        version, hpas = state.table.members.version, state.hpas
        known = self._members
        if state is not self._state or known.version != version or known.hpas is not hpas:
            pieces = [state.table.members_of(key) for key in hpas]
            owner = np.repeat(np.arange(len(hpas)), [len(piece) for piece in pieces])
            rows = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
            self._state, self._members = state, _Members(version, hpas, rows, owner)
        return self._members


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
    state: State, sampled: Int64Vector, whose: Int64Vector, samples: NDArray[np.int64], now: Instant
) -> Int64Vector:
    """Return (HPAs,) the middle of the time that the samples of each cover; now where there are none."""
    found = np.full(len(samples), int(now), np.int64)
    ends, windows = (
        _medians(values[sampled], whose, samples) for values in (state.samples.times, state.samples.windows)
    )
    known = samples > 0
    found[known] = ends - windows // 2
    return found


def _medians(values: Int64Vector, whose: Int64Vector, samples: Int64Vector) -> Int64Vector:
    """Return the median of each HPA's values, of those that have any; ``whose`` is in order, ``samples`` counts."""
    counts = samples[samples > 0]
    if len(values) and (values == values[0]).all():
        # Of samples that were taken together all are the same.
        return np.full(len(counts), int(float(values[0])), np.int64)
    ordered = values[np.lexsort((values, whose))].astype(np.float64)
    first = np.cumsum(counts) - counts
    middle: NDArray[np.float64] = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
    return middle.astype(np.int64)
