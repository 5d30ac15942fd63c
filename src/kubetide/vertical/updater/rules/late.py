"""Changes for whose answers an earlier loop waited no longer: what has come of them, and which count as made."""

from __future__ import annotations

from kubetide.objects.pod import Pod
from kubetide.objects.vpa import IN_PLACE
from kubetide.vertical.resources.policies import update_mode
from kubetide.vertical.updater import events
from kubetide.vertical.updater.decision import LateChange, Outcome, VpaCounts
from kubetide.vertical.updater.rules.groups import Group
from kubetide.vertical.updater.rules.in_place import recommended_targets
from kubetide.vertical.updater.rules.turn import Turn


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
        turn.refused.append(_uid_of(late))
    if late.change == "eviction":
        if outcome.error:
            turn.say("EvictionFailed", late.pod, late.vpa, outcome.error)
            counts.failed_evictions.append("EvictionError")
        else:
            turn.say("Evicted", late.pod, late.vpa)
            counts.evicted += 1
            turn.result.events += events.evicted(late.pod, late.vpa, late.uid)
        return
    ends_boost = late.change == "end of boost"
    if not outcome.error:
        turn.say("Unboosted" if ends_boost else "Resized", late.pod, late.vpa)
        counts.in_place_updated += 1
        turn.result.events.append(events.resized(late.pod, late.uid))
        return
    turn.say("UnboostFailed" if ends_boost else "ResizeFailed", late.pod, late.vpa, outcome.error)
    if ends_boost:
        counts.failed_resizes.append("UnboostError")
        return
    infeasible = outcome.node_capacity and vpa is not None and update_mode(vpa.spec) == IN_PLACE
    counts.failed_resizes.append("InPlaceUpdateInfeasible" if infeasible else "InPlaceUpdateError")
    if (
        infeasible
        and vpa is not None
        and (targets := recommended_targets(vpa.status.recommendation)) is not None
    ):
        turn.state.memory.infeasible[_uid_of(late)] = targets
    if not outcome.unknown:
        turn.not_resized.add(_uid_of(late))


def _uid_of(late: LateChange) -> str:
    return late.uid or "/".join(late.pod)
