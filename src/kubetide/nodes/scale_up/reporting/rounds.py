"""The report of an attempt at a scale-up, built once its increases are answered.

Source: Cluster Autoscaler, scale-up status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.scale_up.choosing.options import pods_left
from kubetide.nodes.scale_up.tick import Increase, Rejection, Round, Tick, Verdict
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup

_SEVERAL = 2
NOT_EXECUTED = "scale-up execution failed"
_BEFORE_ANY_GROUP = (
    "ScaleUpNotTried",
    "ScaleUpNotNeeded",
    "ScaleUpInCooldown",
    "ScaleUpLimitedByMaxNodesTotal",
)


def combined(errors: Sequence[str]) -> str:
    """Return several errors as one text: upstream gives the first as it is and quotes the others behind it."""
    if len({*errors}) < _SEVERAL:
        return errors[0] if errors else ""
    first, *others = sorted(errors)
    quoted = ", ".join(json.dumps(one, ensure_ascii=False) for one in others)
    return f"{first} ...and other errors: [{quoted}]"


def round_of(tick: Tick, refused: Sequence[str], *, all_tried: bool = False) -> Round:
    """Return the report of the tick's attempt.

    Args:
        tick: The tick.
        refused: Groups whose increase the cloud refused.
        all_tried: Whether the other groups were still tried after a refusal.
    """
    considered = () if tick.result in (*_BEFORE_ANY_GROUP, "ScaleUpError") else tuple(tick.views)
    triggered: tuple[Pod, ...] = ()
    remain: list[Verdict] = []
    awaiting: list[Pod] = []
    if tick.result in {"ScaleUpSuccessful", "ScaleUpError"}:
        triggered = tuple(pod for option in tick.chosen for pod in option.pods)
    if tick.result == "ScaleUpError" and (tick.increases or not tick.chosen):
        remain = _without(tick, [] if all_tried else [one.group.id for one in tick.increases], refused)
    elif tick.result in {"ScaleUpSuccessful", "ScaleUpNoOptionsAvailable"}:
        remain = pods_left(tick.verdicts)
    if tick.result == "ScaleUpSuccessful" and tick.chosen:
        best = tick.chosen[0].group.id
        for verdict in tick.verdicts:
            if verdict.accepted and best in verdict.rejected:
                awaiting += verdict.pods.pods
    left = [(_real(tick, verdict.pods.pods), verdict.refused) for verdict in remain]
    if tick.result == "ScaleUpLimitedByMaxNodesTotal":
        left = [(_real(tick, tick.demand.pods), {})]
    return Round(
        result=tick.result,
        error=tick.error,
        error_type=tick.error_type,
        options=tuple(tick.options),
        chosen=tick.chosen,
        drawn_among=tick.drawn_among,
        increases=tuple(tick.increases) if tick.result == "ScaleUpSuccessful" else (),
        failed=tuple(refused),
        triggered=_real(tick, triggered),
        remain=tuple(left),
        awaiting=_real(tick, awaiting),
        skipped=dict(tick.skipped),
        considered=considered,
    )


def min_size_round(
    tick: Tick, actions: Sequence[IncreaseSize], groups: Mapping[str, NodeGroup], refused: Sequence[str]
) -> Round:
    """Return the report of raising groups to their minimum."""
    if not actions:
        return Round("ScaleUpNotNeeded")
    if refused:
        return Round("ScaleUpError", tick.error, tick.error_type, failed=tuple(refused))
    increases = [Increase(groups[one.group], one.size + one.delta, before=one.size) for one in actions]
    return Round("ScaleUpSuccessful", increases=tuple(increases), considered=tuple(tick.view.groups))


def _real(tick: Tick, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """Return the pods that exist."""
    return tuple(
        pod for pod in pods if (pod.metadata.namespace, pod.metadata.name) not in tick.demand.virtual
    )


def _without(tick: Tick, planned: Sequence[str], refused: Sequence[str]) -> list[Verdict]:
    """Return the verdicts on pods that nobody helps once these groups count as refusing.

    ``planned``: Increases that are made one after another: those after the first that failed are not made either.
    """
    failed = dict.fromkeys(refused)
    if len(refused) == 1 and refused[0] in planned:
        failed.update(dict.fromkeys(planned[planned.index(refused[0]) :]))
    found = []
    for verdict in tick.verdicts:
        if any(group not in failed for group in verdict.accepted):
            continue
        rejected = {**verdict.rejected, **dict.fromkeys(verdict.accepted, Rejection((NOT_EXECUTED,)))}
        found.append(Verdict(verdict.pods, rejected, skipped_refuse=verdict.skipped_refuse))
    return found
