"""How a pod that its spread constraints keep off every new node of a group gets one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.explain.waiting.group_changes import ZONES
from kubetide.nodes.explain.waiting.pod_changes import Change, Changed
from kubetide.objects.pod import Pod

PLUGIN: Final = "PodTopologySpread"

_ELSEWHERE: Final = "another"
"""The value of a zone that no node has."""


def spread_softly(pod: Pod, group: str, refuses: Callable[[Pod, Mapping[str, str]], bool]) -> Changed | None:
    """Return the pod with one hard spread constraint made soft, and describe it; None if no single one helps.

    Of zones, a group like this one in another zone is offered before it, where that helps.

    Args:
        pod: The pod.
        group: The group that refuses it.
        refuses: Whether the group's new nodes, with these labels beside their own, still refuse a pod for its spread.
    """
    rules = pod.spec.topology_spread_constraints or ()
    for at, rule in enumerate(rules):
        if rule.when_unsatisfiable != "DoNotSchedule":
            continue
        softer = replace(rule, when_unsatisfiable="ScheduleAnyway")
        changed = replace(
            pod, spec=replace(pod.spec, topology_spread_constraints=(*rules[:at], softer, *rules[at + 1 :]))
        )
        if refuses(changed, {}):
            continue
        text = f"let the spread over {rule.topology_key} be soft (whenUnsatisfiable: ScheduleAnyway)"
        if rule.topology_key in ZONES and not refuses(pod, {rule.topology_key: _ELSEWHERE}):
            text = f"add a group like {group} in another zone, or {text}"
        return changed, Change("spread", text)
    return None
