"""Changes for whose answers an earlier loop waited no longer: what has come of them, and which count as made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.objects.pod import Pod
from kubetide.objects.vpa import IN_PLACE
from kubetide.vertical.updater import events
from kubetide.vertical.updater.decision import Change, LateChange, Outcome, VpaCounts
from kubetide.vertical.updater.rules.groups import Group
from kubetide.vertical.updater.rules.in_place import recommended_targets
from kubetide.vertical.updater.rules.turn import Turn

_MADE: Final[Mapping[Change, str]] = {
    "eviction": "Evicted",
    "resize": "Resized",
    "end of boost": "Unboosted",
}
_FAILED: Final[Mapping[Change, tuple[str, str]]] = {
    "eviction": ("EvictionFailed", "EvictionError"),
    "resize": ("ResizeFailed", "InPlaceUpdateError"),
    "end of boost": ("UnboostFailed", "UnboostError"),
}
"""The reason of a failed change, and the label of the series of failures."""


def take_late(turn: Turn) -> None:
    """Report what has come of late changes, and note those that count as made."""
    for late in turn.state.late:
        if late.outcome is not None and not late.outcome.withheld:
            _report(turn, late, late.outcome)
        if late.counts_as_made:
            turn.changing[_uid_of(late)] = late


def count_late(late: LateChange, pod: Pod, group: Group | None, *, boosts_count: bool) -> None:
    """Take a pod whose change counts as made from the budget of its group, if it has one."""
    if group is None:
        return
    if late.change == "eviction":
        group.evicted += pod.status.phase != "Pending"
    elif late.change == "resize" or boosts_count:
        group.resizing += 1


def _report(turn: Turn, late: LateChange, outcome: Outcome) -> None:
    vpa = turn.state.vpas.get(late.vpa)
    counts = VpaCounts("") if vpa is None else turn.counts_of(vpa)
    if outcome.error:
        _report_failure(turn, late, outcome, counts)
        return
    turn.say(_MADE[late.change], late.pod, late.vpa)
    if late.change == "eviction":
        counts.evicted += 1
        turn.result.events += events.evicted(late.pod, late.vpa, late.uid)
    else:
        counts.in_place_updated += 1
        turn.result.events.append(events.resized(late.pod, late.uid))


def _report_failure(turn: Turn, late: LateChange, outcome: Outcome, counts: VpaCounts) -> None:
    code, label = _FAILED[late.change]
    turn.refused.append(_uid_of(late))
    turn.say(code, late.pod, late.vpa, outcome.error)
    if late.change == "eviction":
        counts.failed_evictions.append(label)
        return
    if outcome.node_capacity and late.change == "resize" and counts.mode == IN_PLACE:
        label = "InPlaceUpdateInfeasible"
        targets = recommended_targets(turn.state.vpas[late.vpa].status.recommendation)
        if targets is not None:
            turn.state.memory.infeasible[_uid_of(late)] = targets
    counts.failed_resizes.append(label)
    if late.change == "resize" and not outcome.unknown:
        turn.not_resized.add(_uid_of(late))


def _uid_of(late: LateChange) -> str:
    return late.uid or "/".join(late.pod)
