"""Decisions about all HPAs at once: ordinary ones from columns, the others one by one.

Whatever an ordinary HPA's verdict is made from stands in columns. Where none of it differs from the last
tick, nothing was to be done then and its status has stayed as it was left, the verdict of that tick is
given again: it would come out the same.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kubetide.horizontal.batch.columns import ordinary
from kubetide.horizontal.batch.hpas import HpaColumns
from kubetide.horizontal.batch.results import GroundsAt, Newest, Ordinary
from kubetide.horizontal.cached_results import LastPass
from kubetide.horizontal.decision import Computation, Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.rules.evaluate import able_of, evaluate, hold, limit_of
from kubetide.horizontal.rules.metric_results import computation, why_of
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say
from kubetide.horizontal.status.status import action_of
from kubetide.objects.hpa import MetricStatus
from kubetide.units.steps import Steps, is_pause
from kubetide.units.time import Instant
from kubetide.units.vectors import BoolVector

# Up to here twice the number fits an int32, so a number that stays has no limit to meet.
_LARGEST_UNLIMITED = 1 << 30

_NONE = Verdict(("", ""))


def evaluate_all(state: State, now: Instant) -> Steps[tuple[Verdict, ...]]:
    """Return the verdicts in order of the HPAs."""
    hpas, last = state.columns(), state.last_pass
    if last is not None and last.columns is not hpas:
        last = None
    found = ordinary(state, now, last.newest.found if last is not None else None)
    unmoved = found.mask & (found.held == hpas.current) & (hpas.current < _LARGEST_UNLIMITED)
    this = _figures(found, hpas)
    verdicts: list[Verdict] = [_NONE] * len(hpas.specs)
    if last is not None:
        this.repeated = unmoved & _as_before(this, last)
        this.before, verdicts = last.settlements, list(last.verdicts)
        # The old pass is let go of.
        this.newest, this.newest.found = last.newest, found
        for position, slot in zip(
            np.nonzero(this.repeated)[0].tolist(), found.slot[this.repeated].tolist(), strict=True
        ):
            # Where the proposal is remembered is all that is new.
            verdicts[position].slot = slot
    newest = this.newest
    other = np.nonzero(~this.repeated)[0]
    rows = zip(
        other.tolist(),
        found.mask[other].tolist(),
        unmoved[other].tolist(),
        hpas.current[other].tolist(),
        found.best[other].tolist(),
        found.winner[other].tolist(),
        found.held[other].tolist(),
        found.slot[other].tolist(),
        strict=True,
    )
    holds = bool(state.holds)
    for number, (position, is_ordinary, stays, current, best, winner, held, slot) in enumerate(rows):
        if is_pause(number):
            yield
        spec = hpas.specs[position]
        if not is_ordinary:
            verdicts[position] = evaluate(state, spec.key, now)
            continue
        metrics = spec.metrics
        desired, limit = held, "DesiredWithinRange"
        if not stays:
            desired, limit = limit_of(spec, state, held, current, now)
        limited = desired != held
        desired, held_back = hold(desired, current, holds=holds)
        statuses, computations = _presented(state, spec, found, position)
        name = metrics[winner].title
        verdicts[position] = Verdict(
            spec.key,
            current,
            desired,
            desired != current,
            why_of(name, best, current),
            _notes(name, able_of(spec, best, current, held=held), limit, limited),
            metrics=statuses,
            computations=computations,
            raw=best,
            slot=slot,
            grounds=GroundsAt(newest, position),
            stabilized=held,
            limit=limit,
            held_back=held_back,
        )
    this.verdicts = tuple(verdicts)
    state.last_pass = this
    return this.verdicts


def _presented(
    state: State, spec: Autoscaler, found: Ordinary, position: int
) -> tuple[tuple[MetricStatus, ...], tuple[Computation, ...]]:
    """Return the entries of the status of an ordinary HPA, and the labels of its computations."""
    before = state.statuses[spec.key].current_replicas
    if len(spec.metrics) == 1:
        cell, index = found.cell(0, position)
        action = action_of(before, cell.proposals[index])
        return (cell.status(index),), (computation(spec.metrics[0].type, action),)
    statuses, computations = [], []
    for at, metric in enumerate(spec.metrics):
        cell, index = found.cell(at, position)
        statuses.append(cell.status(index))
        computations.append(computation(metric.type, action_of(before, cell.proposals[index])))
    return tuple(statuses), tuple(computations)


@lru_cache(maxsize=4096)
def _notes(metric: str, able: say.Note, limit: str, limited: bool) -> tuple[say.Note, ...]:  # cached
    return say.GOT_SCALE, say.valid_metric(metric), able, say.scaling_limited(limit, limited=limited)


# ── what has changed since the last tick ────────────────────────────────────────────────────────


def _figures(found: Ordinary, hpas: HpaColumns) -> LastPass:
    """Return all that the verdicts of ordinary HPAs are made from, their specs, statuses and memory apart."""
    overall = np.stack([found.mask, hpas.current, found.best, found.winner, found.held])
    cells = [cell for at in sorted(found.cells) for cell in found.cells[at]]
    figures = [(cell.segments.positions, cell.figures) for cell in cells]
    none = np.zeros_like(found.mask)
    return LastPass(hpas, overall, figures, found.mask, found.best, found.slot, none, Newest(found))


def _as_before(this: LastPass, last: LastPass) -> BoolVector:
    """Return (HPAs,) whether everything is as it was, and nothing was to be done."""
    if not len(last.quiet) or [len(at) for at, _ in this.cells] != [len(at) for at, _ in last.cells]:
        return np.zeros_like(this.stored)
    same: BoolVector = (this.overall == last.overall).all(axis=0) & last.quiet
    for (positions, figures), (others, before) in zip(this.cells, last.cells, strict=True):
        same[positions] &= (positions == others) & (figures == before).all(axis=0)
    return same
