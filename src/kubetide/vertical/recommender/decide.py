"""One pass of the recommender: recommended requests of containers.

1. Percentiles of all containers at once, margin, confidence, minimum (``estimate``).
2. Rounding, whole cores, minimum and maximum of policies (``rendering``, ``statuses``).
3. Conditions; a status is written only if it says something new (``conditions``).
4. Checkpoints of all VPAs, the one first that was written longest ago (``checkpoints``); those whose
   VPA is gone are deleted every ten minutes.

``absorb`` then notes what was written and drops aggregates that are out of date.

Source: VPA 1.8.1, vpa-recommender.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubetide.objects.meta import Key
from kubetide.objects.vpa import PodRecommendation, VpaStatus
from kubetide.units.time import Instant
from kubetide.vertical.recommender.decision import Commands, Outcomes, Result, StatusWrite
from kubetide.vertical.recommender.facts.hpas import message
from kubetide.vertical.recommender.facts.members import Stored, Vpa, encode_status
from kubetide.vertical.recommender.facts.views import CheckpointView
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.conditions import FETCHING_HISTORY, conditions_of, is_true
from kubetide.vertical.recommender.targets.statuses import awaits_sizes, recommendations, says_the_same
from kubetide.vertical.recommender.targets.unmeasured import without_unmeasured
from kubetide.vertical.recommender.usage.checkpoints import checkpoints_of

__all__ = ["absorb", "checkpoints", "decide"]

_AT_ONCE = 500
"""VPAs whose statuses are made together; only what is to be written is held, encoded."""


def decide(state: State, now: Instant) -> Commands:
    """Return the statuses and checkpoints to write, and the checkpoints to delete."""
    vpas = [state.vpas[key] for key in sorted(state.vpas)]
    found = tuple(_statuses(state, vpas, now))
    advice = tuple(one for one in found if state.vpas[one.namespace, one.name].view.advised)
    statuses = tuple(one for one in found if not state.vpas[one.namespace, one.name].view.advised)
    if not state.settings.uses_checkpoints:
        return Commands(now, statuses, advice)
    last = state.checkpoints_collected
    collects = last is not None and now - last > state.settings.checkpoints_gc_interval
    return Commands(
        now,
        statuses,
        advice,
        _checkpoints([vpa for vpa in vpas if not vpa.view.advised]),
        tuple(_left_over(state)) if collects else (),
        collects,
    )


def _statuses(state: State, vpas: Sequence[Vpa], now: Instant) -> Iterator[StatusWrite]:
    for begin in range(0, len(vpas), _AT_ONCE):
        some = vpas[begin : begin + _AT_ONCE]
        made = (
            [one.stored.read().recommendation or PodRecommendation() for one in some]
            if awaits_sizes(state)
            else recommendations(state, some)
        )
        written = without_unmeasured(state, some, made) if state.settings.wait_for_samples else made
        for vpa, estimate, recommendation in zip(some, made, written, strict=True):
            waits = estimate != recommendation and not recommendation.container_recommendations
            status = _status(state, vpa, recommendation, now, waits=waits)
            encoded = encode_status(status)
            old = vpa.stored
            if encoded != old.encoded and (old.ours or not says_the_same(old.read(), status)):
                yield StatusWrite(*vpa.key, msgspec.Raw(encoded))


def _status(
    state: State, vpa: Vpa, recommendation: PodRecommendation, now: Instant, *, waits: bool
) -> VpaStatus:
    return VpaStatus(
        recommendation=recommendation,
        conditions=conditions_of(
            vpa.stored.conditions,
            problem=vpa.view.target.problem,
            pods=state.pod_count(vpa) > 0,
            provided=bool(recommendation.container_recommendations),
            waits=waits,
            now=now,
            left=message(vpa.view.left),
        ),
        observed_generation=vpa.view.generation,
    )


def _checkpoints(vpas: Sequence[Vpa]) -> tuple[Key, ...]:
    due = [vpa for vpa in vpas if not is_true(vpa.stored.conditions, FETCHING_HISTORY)]
    due.sort(key=lambda vpa: -1 if vpa.checkpointed is None else vpa.checkpointed)
    return tuple(vpa.key for vpa in due)


def checkpoints(state: State, vpas: Sequence[Key], now: Instant) -> Iterator[CheckpointView]:
    """Yield the checkpoints of VPAs in order; the state must not change during iteration."""
    cells = [
        (*key, container, rows)
        for key in vpas
        if key in state.vpas
        for container, rows in state.cells_of(state.vpas[key])
    ]
    yield from checkpoints_of(state.aggregates, state.containers, cells, now)


def absorb(state: State, commands: Commands, outcomes: Outcomes, now: Instant) -> Result:
    """Apply the outcomes of the writes and drop outdated aggregates; return the result."""
    if not outcomes.withheld:
        _note_written(state, commands, outcomes)
    if commands.collects:
        state.checkpoints_collected = commands.at
    state.collect(now)
    return Result(state.aggregate_count(), len(state.pods), tuple(state.problems))


def _note_written(state: State, commands: Commands, outcomes: Outcomes) -> None:
    failed = {(one.kind, one.namespace, one.name) for one in outcomes.failures}
    for write in (*commands.statuses, *commands.advice):
        vpa = state.vpas.get((write.namespace, write.name))
        if vpa is not None and ("status", write.namespace, write.name) not in failed:
            vpa.stored = Stored.of(msgspec.json.decode(write.status, type=VpaStatus), ours=True)
    for key in commands.checkpoints:
        vpa = state.vpas.get(key)
        if vpa is not None and ("checkpoint", *key) not in failed:
            vpa.checkpointed = commands.at
            for container, _ in state.cells_of(vpa):
                state.stored[key[0], f"{key[1]}-{container}"] = key[1]
    for key in commands.deletions:
        if ("deletion", *key) not in failed:
            state.stored.pop(key, None)


def _left_over(state: State) -> Iterator[Key]:
    """Yield the stored checkpoints whose VPA is gone, in namespaces that this recommender looks at, ordered."""
    only, ignored = state.settings.vpa_object_namespace, state.settings.ignored_vpa_object_namespaces
    for namespace, name in sorted(state.stored):
        looked_at = namespace not in ignored and only in {"", namespace}
        if looked_at and (namespace, state.stored[namespace, name]) not in state.views:
            yield namespace, name
