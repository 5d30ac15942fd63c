"""Histograms of several aggregates of one container count from the same reference."""

from __future__ import annotations

import numpy as np
import pytest

from kubetide.units.time import Instant, hours, parse_rfc3339
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.alignment import align

_EARLY = parse_rfc3339("2026-03-02T00:00:00Z")
_LATE = Instant(_EARLY + hours(48))


def _aggregates(*starts: Instant) -> tuple[Aggregates, tuple[int, ...]]:
    """Return aggregates with one sample each, which sets its reference, and their rows."""
    aggregates = Aggregates(Settings())
    rows = tuple(aggregates.add(start) for start in starts)
    for row, start in zip(rows, starts, strict=True):
        for histograms in (aggregates.cpu, aggregates.memory):
            histograms.add(np.array([row]), np.array([20]), 1.0, np.array([start]))
    return aggregates, rows


@pytest.mark.parametrize("starts", [(_EARLY, _LATE), (_LATE, _EARLY)])
def test_live_aggregates_move_to_the_youngest_in_whatever_order(starts):
    """Upstream adds them in random order, so within few passes each is added after the youngest."""
    aggregates, rows = _aggregates(*starts)
    align(aggregates, [rows], set())
    assert aggregates.memory.reference[list(rows)].tolist() == [_LATE, _LATE]
    assert aggregates.cpu.reference[list(rows)].tolist() == [_LATE, _LATE]
    old = rows[starts.index(_EARLY)]
    assert aggregates.memory.total[old] == 0.25  # two half-lives


def test_live_aggregates_do_not_move_to_a_checkpoint():
    """What a checkpoint was loaded into is added last: it moves, but nothing is added after it that could."""
    aggregates, rows = _aggregates(_EARLY, _LATE)
    align(aggregates, [rows], {rows[1]})
    assert aggregates.memory.reference[list(rows)].tolist() == [_EARLY, _LATE]
    aggregates, rows = _aggregates(_EARLY, _LATE)
    align(aggregates, [rows], {rows[0]})
    assert aggregates.memory.reference[list(rows)].tolist() == [_LATE, _LATE]
