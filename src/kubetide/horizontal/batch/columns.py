"""Proposals and stabilization of all ordinary HPAs at once, in columns.

An HPA is ordinary when its scale is readable and within bounds, its pods are its own, all its
metrics ask for resources, and each of them has a proposal. Every other HPA is decided about
by itself; the outcome of both ways is the same, and a test holds them against each other. Doubles
are combined elementwise in the order in which ``proposal`` combines them.
"""

from __future__ import annotations

import numpy as np

from kubetide.horizontal.batch.hpas import HpaColumns, Segments
from kubetide.horizontal.batch.results import Cell, Ordinary, TallyColumns
from kubetide.horizontal.memory import UNUSED
from kubetide.horizontal.metrics.registry import propose
from kubetide.horizontal.metrics.types import Proposal
from kubetide.horizontal.rules.tally import tally_columns
from kubetide.horizontal.state import State
from kubetide.units.time import Instant
from kubetide.units.vectors import BoolVector, Int64Vector

# Products of these stay within int64 and their quotients within int32, so nothing can wrap.
_LARGEST_SUM = 1 << 55
_LARGEST_PERCENT = 1 << 30


def ordinary(state: State, now: Instant, last: Ordinary | None = None) -> Ordinary:
    """Return proposals and stabilized replicas of all ordinary HPAs.

    Args:
        last: The last pass over the same HPAs: what it walked over and has not changed is not walked over again.
    """
    hpas = state.columns()
    count = len(hpas.current)
    mask = hpas.plain & hpas.readable & (hpas.current > 0)
    mask &= (hpas.current >= hpas.minimum) & (hpas.current <= hpas.maximum)
    mask &= state.recommendations.count[hpas.row] > 0
    if state.samples.cluster_error is not None:
        mask[:] = False
    for key in (*state.samples.errors, *state.table.members.contested()):
        if key in hpas.position:
            mask[hpas.position[key]] = False
    best, winner = np.zeros(count, np.int64), np.zeros(count, np.int64)
    cells: dict[int, list[Cell]] = {}
    if mask.any():
        for at, key in state.cells():
            segments = state.segments((at, key))
            tallies = tally_columns(state, segments, now)
            if tallies is None:
                mask[segments.positions] = False
                continue
            before = (
                next((cell for cell in last.cells.get(at, ()) if cell.segments is segments), None)
                if last
                else None
            )
            cell = _cell(hpas, segments, tallies, state, mask, before)
            cells.setdefault(at, []).append(cell)
            mask[segments.positions[cell.replicas < 0]] = False
            # Cells come in the order of the spec's metrics, so the first of equal proposals wins.
            so_far = best[segments.positions]
            better = (so_far == 0) | (cell.replicas > so_far)
            chosen = segments.positions[better]
            best[chosen], winner[chosen] = cell.replicas[better], at
    held, slot = _stabilized(state, hpas, best, now)
    return Ordinary(mask, best, winner, held, slot, cells, hpas.specs)


def _cell(
    hpas: HpaColumns,
    segments: Segments,
    tallies: TallyColumns,
    state: State,
    mask: BoolVector,
    last: Cell | None,
) -> Cell:
    """Compute the proposals of a cell; those with something to fill in one by one, or as in the ``last`` pass."""
    positions = segments.positions
    current, low, high = hpas.current[positions], hpas.lowest_ratio[positions], hpas.highest_ratio[positions]
    by_percent, target = segments.by_utilization, segments.target
    usage, requests, ready = tallies.usage, tallies.requests, tallies.ready
    sound = mask[positions] & ~tallies.odd & (tallies.answered > 0) & (ready > 0) & (target > 0)
    sound &= (usage >= 0) & (usage < _LARGEST_SUM) & (~by_percent | (requests > 0))
    percent = np.where(sound & by_percent, usage, 0) * 100 // np.maximum(requests, 1)
    sound &= percent < _LARGEST_PERCENT
    average = usage // np.maximum(ready, 1)
    ratio = np.where(by_percent, percent, average).astype(np.float64) / np.maximum(target, 1).astype(
        np.float64
    )
    simple = sound & (tallies.missing == 0) & ((tallies.unready == 0) | (ratio <= 1.0))
    desired = np.ceil(ratio * ready.astype(np.float64))
    simple &= desired < _LARGEST_PERCENT
    within = (low <= ratio) & (ratio <= high)
    replicas = np.where(within, current, np.where(simple, desired, 0.0).astype(np.int64))
    replicas[~simple] = -1
    index = np.full(len(hpas.current), -1, np.int64)
    index[positions] = np.arange(len(positions))
    figures = tallies.figures()
    walked: dict[int, Proposal] = {}
    known: dict[int, Proposal] = {}
    if last is not None and last.walked:
        same = (figures == last.figures).all(axis=0) & (current == last.current)
        known = {place: found for place, found in last.walked.items() if same[place]}
    for place in np.nonzero(~simple & mask[positions] & ~tallies.odd)[0].tolist():
        if place in known:
            walked[place] = known[place]
            replicas[place] = known[place].replicas
            continue
        spec = state.specs[segments.hpas[place]]
        found = propose(segments.metrics[place], tallies.at(place), int(current[place]), spec.tolerance)
        if isinstance(found, Proposal) and found.replicas >= 0:
            walked[place] = found
            replicas[place] = found.replicas
    return Cell(
        segments,
        tallies,
        index.tolist(),
        current,
        figures,
        replicas,
        replicas.tolist(),
        average.tolist(),
        percent.tolist(),
        walked,
    )


def _stabilized(
    state: State, hpas: HpaColumns, best: Int64Vector, now: Instant
) -> tuple[Int64Vector, Int64Vector]:
    """Return ``stabilization.Stabilized`` in columns."""
    at, replicas = state.recommendations.used_by(hpas.rows)
    up, down = now - hpas.up_window, now - hpas.down_window
    if not at.size:
        return best, np.full(len(best), -1, np.int64)
    # Without behaviour a recommendation of exactly the window's age still counts, with it not.
    newer = np.where(hpas.behaving, down, down - 1) < at
    highest = np.maximum(best, np.where(newer, replicas, np.iinfo(np.int64).min).max(axis=0))
    held = highest
    if hpas.behaving.any():
        lowest = best
        if (hpas.up_window > 0).any():
            lowest = np.minimum(best, np.where(up < at, replicas, np.iinfo(np.int64).max).min(axis=0))
        between = np.minimum(np.maximum(hpas.current, lowest), highest)
        held = np.where(hpas.behaving, between, highest)
    cutoff = np.where(hpas.behaving, np.minimum(up, down), down)
    outdated = (at < cutoff) & (at != UNUSED)
    return held, np.where(outdated, np.arange(len(at))[:, None], -1).max(axis=0)
