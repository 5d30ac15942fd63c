"""How a pod that its rules about other pods keep off every new node of a group gets one: spreading and affinity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.explain.waiting.group_changes import ZONES
from kubetide.nodes.explain.waiting.pod_changes import Change, Changed, relax_inter_pod_rules
from kubetide.objects.pod import Pod

_SPREAD: Final = "PodTopologySpread"
_AFFINITY: Final = "InterPodAffinity"
PLUGINS: Final = frozenset({_SPREAD, _AFFINITY})
"""Those that refuse a pod for such a rule."""

_ELSEWHERE: Final = "another"
"""The value of a zone that no node has."""


Labels = Mapping[str, str]
Refuses = Callable[[Pod, Labels], bool]
"""Whether a group's new nodes, with these labels beside their own, still refuse a pod for rules of the same sort."""


def relax_rules(plugin: str, pod: Pod, group: str, refuses: Refuses) -> Changed | None:
    """Return the pod with one rule relaxed, and describe it; None if no single one helps.

    Args:
        plugin: The one of ``PLUGINS`` that refuses it.
        pod: The pod.
        group: The group whose nodes refuse it.
        refuses: Asks again about a changed pod, or other nodes.
    """
    if plugin == _AFFINITY:
        return relax_inter_pod_rules(pod, lambda changed: not refuses(changed, {}))
    return _spread_softly(pod, group, refuses)


def _spread_softly(pod: Pod, group: str, refuses: Refuses) -> Changed | None:
    """Make one hard spread constraint soft. Of zones, a group in another zone is offered before it, where that helps."""
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
