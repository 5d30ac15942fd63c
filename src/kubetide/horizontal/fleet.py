"""Deciding about all HPAs at once: ordinary ones from columns, the others one by one.

Whatever an ordinary HPA's verdict is made from stands in columns. Where none of it differs from the last
tick, nothing was to be done then and its status has stayed as it was left, the verdict of that tick is
given again: it would come out the same.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from kubetide.horizontal import conditions as say
from kubetide.horizontal.columns import Cell, Ordinary, ordinary
from kubetide.horizontal.decision import Verdict
from kubetide.horizontal.hpas import HpaColumns
from kubetide.horizontal.judging import able_of, computation, judge, limit_of, why_of
from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.state import LastPass, State
from kubetide.horizontal.status import action_of
from kubetide.ports.metrics import BoolVector, Int64Vector
from kubetide.units.time import Instant

# Up to here twice the number fits an int32, so a number that stays has no limit to meet.
_LARGEST_UNLIMITED = 1 << 30


def judge_all(state: State, now: Instant) -> tuple[Verdict, ...]:
    """Gives the verdicts in order of the HPAs."""
    found, hpas = ordinary(state, now), state.columns()
    unmoved = found.mask & (found.held == hpas.current) & (hpas.current < _LARGEST_UNLIMITED)
    last, this = state.last_pass, _figures(found, hpas)
    same = unmoved & _equal(this, last) if last is not None else np.zeros_like(found.mask)
    rows = zip(
        state.hpas,
        found.mask.tolist(),
        same.tolist(),
        unmoved.tolist(),
        hpas.current.tolist(),
        found.best.tolist(),
        found.winner.tolist(),
        found.held.tolist(),
        found.slot.tolist(),
        strict=True,
    )
    verdicts: list[Verdict] = []
    for position, (key, is_ordinary, is_same, stays, current, best, winner, held, slot) in enumerate(rows):
        if not is_ordinary:
            verdicts.append(judge(state, key, now))
            continue
        spec = state.specs[key]
        if is_same and last is not None:
            verdict = last.verdicts[position]
            settled = state.quiet.get(key)
            if settled is not None and settled.verdict is verdict and state.statuses[key] is settled.status:
                # Where the proposal is remembered is all that is new; the old pass is let go of.
                verdict.slot, verdict.grounds = slot, partial(found.grounds, position, spec.metrics)
                verdicts.append(verdict)
                continue
        verdict = Verdict(key, current, raw=best, slot=slot, stabilized=held)
        _present(verdict, state, spec, found, position)
        desired, limit = held, "DesiredWithinRange"
        if not stays:
            desired, limit = limit_of(spec, state, held, current, now)
        verdict.desired, verdict.limit = desired, limit
        if state.holds:
            verdict.hold()
        verdict.rescale = verdict.desired != current
        name = spec.metrics[winner].title
        verdict.why = why_of(name, best, current)
        able = able_of(spec, best, current, held=held)
        verdict.notes = _notes(name, able, limit, desired != held)
        verdicts.append(verdict)
    state.last_pass = this._replace(verdicts=tuple(verdicts))
    return state.last_pass.verdicts


def _present(verdict: Verdict, state: State, spec: Autoscaler, found: Ordinary, position: int) -> None:
    """Puts the metrics of an ordinary HPA into the verdict."""
    before = state.statuses[spec.key].current_replicas
    verdict.grounds = partial(found.grounds, position, spec.metrics)
    if len(spec.metrics) == 1:
        cell, index = found.cell(0, position)
        verdict.metrics = (cell.status(index),)
        verdict.computations = (computation(spec.metrics[0].type, action_of(before, cell.proposals[index])),)
        return
    statuses, computations = [], []
    for at, metric in enumerate(spec.metrics):
        cell, index = found.cell(at, position)
        statuses.append(cell.status(index))
        computations.append(computation(metric.type, action_of(before, cell.proposals[index])))
    verdict.metrics, verdict.computations = tuple(statuses), tuple(computations)


@lru_cache(maxsize=4096)
def _notes(metric: str, able: say.Note, limit: str, limited: bool) -> tuple[say.Note, ...]:  # cached
    return say.GOT_SCALE, say.valid_metric(metric), able, say.scaling_limited(limit, limited=limited)


# ── what has changed since the last tick ────────────────────────────────────────────────────────


def _figures(found: Ordinary, hpas: HpaColumns) -> LastPass:
    """Gives all that the verdicts of ordinary HPAs are made from, their specs, statuses and memory apart."""
    overall = np.stack([found.mask, hpas.current, found.best, found.winner, found.held])
    cells = [cell for at in sorted(found.cells) for cell in found.cells[at]]
    return LastPass(hpas, overall, [(cell.segments.positions, _figures_of(cell)) for cell in cells])


def _figures_of(cell: Cell) -> Int64Vector:
    """Gives (figures, HPAs of the cell)."""
    t = cell.tallies
    sums = (t.usage, t.requests, t.missing_requests, t.unready_requests, t.fill)
    return np.stack([t.pods, t.ready, t.unready, t.missing, t.answered, *sums])


def _equal(this: LastPass, last: LastPass) -> BoolVector:
    """Gives (HPAs,) whether everything is as it was."""
    places = [len(at) for at, _ in this.cells]
    if this.columns is not last.columns or places != [len(at) for at, _ in last.cells]:
        return np.zeros(this.overall.shape[1], np.bool_)
    same: BoolVector = (this.overall == last.overall).all(axis=0)
    for (positions, figures), (others, before) in zip(this.cells, last.cells, strict=True):
        same[positions] &= (positions == others) & (figures == before).all(axis=0)
    return same
