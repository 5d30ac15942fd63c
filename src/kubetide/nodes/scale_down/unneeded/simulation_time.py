"""--scale-down-simulation-timeout: when simulation takes too long, this tick skips the remaining nodes.

Removals are tried part by part, each in a step of its own, so that the time that has passed comes from outside and a
replay ends at the same node. Source: Cluster Autoscaler, scale-down planner, which looks at the time before each node.
"""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Reason
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.unneeded.evaluate import Evaluation, OpenEvaluation, begin_evaluation
from kubetide.nodes.state import State
from kubetide.units.time import Instant, format_duration

PODS_IN_A_STEP: Final = 5_000
"""How many pods on candidates are looked at before the time is looked at again."""


def evaluate_in_time(state: State, now: Instant) -> Evaluation | None:
    """Return the evaluation; None if another step of the tick must continue it.

    Outside of a tick there are no steps, and all is done at once.
    """
    cache = state.scale_down_cache
    evaluation = _open_evaluation(state)
    if evaluation is None:
        found = begin_evaluation(state, now, cache)
        if isinstance(found, Evaluation):
            return found
        evaluation = found
    elif state.elapsed - evaluation.begun > state.settings.scale_down_simulation_timeout:
        cache.open_evaluation = None
        return evaluation.end()
    cache.open_evaluation = None
    if evaluation.go_on(None if state.tick is None else PODS_IN_A_STEP):
        return evaluation.end()
    cache.open_evaluation = evaluation
    return None


def is_evaluating(state: State) -> bool:
    """Return whether an earlier step of the tick has begun an evaluation."""
    return _open_evaluation(state) is not None


def cut_reasons(state: State, found: Evaluation) -> tuple[Reason, ...]:
    """Return how many nodes were not tried for lack of time, as reasons."""
    if not found.cut:
        return ()
    limit = format_duration(state.settings.scale_down_simulation_timeout)
    return (reason("SimulationCut", nodes=len(found.not_simulated), limit=limit),)


def _open_evaluation(state: State) -> OpenEvaluation | None:
    evaluation = state.scale_down_cache.open_evaluation
    assert evaluation is None or isinstance(evaluation, OpenEvaluation)
    return evaluation
