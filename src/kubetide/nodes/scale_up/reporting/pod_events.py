"""Events of scale-up on pods, with upstream's reasons and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from kubetide.nodes.decision import EventRecord
from kubetide.nodes.scale_up.tick import Tick, Verdict
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup

Groups = Mapping[str, NodeGroup]

MAX_TOTAL_NODES = "max total nodes in cluster reached"


def on_pod(pod: Pod, reason: str, message: str) -> EventRecord:
    meta = pod.metadata
    return EventRecord("Pod", meta.name, "Normal", reason, message, meta.namespace, meta.uid)


def triggered(tick: Tick) -> list[EventRecord]:
    """Return one event per pod that the new nodes are for: it names the groups that grow for this pod."""
    found = []
    for option in tick.chosen:
        groups = (option.group.id, *option.similar)
        message = f"pod triggered scale-up: {increases_text(tick, groups)}"
        found += [on_pod(pod, "TriggeredScaleUp", message) for pod in _real(tick, option.pods)]
    return found


def not_triggered(tick: Tick, left: Sequence[Verdict], groups: Groups) -> list[EventRecord]:
    """Return one event per pod that no group helps, with the counts of the reasons."""
    if tick.result == "ScaleUpLimitedByMaxNodesTotal":
        message = f"pod didn't trigger scale-up: {MAX_TOTAL_NODES}"
        return [on_pod(pod, "NotTriggerScaleUp", message) for pod in _real(tick, tick.demand.pods)]
    found = []
    for verdict in left:
        message = f"pod didn't trigger scale-up: {reasons_text(tick, verdict, groups)}"
        found += [on_pod(pod, "NotTriggerScaleUp", message) for pod in _real(tick, verdict.pods.pods)]
    return found


def increases_text(tick: Tick, groups: Collection[str]) -> str:
    """Return how these groups grow, as upstream prints it."""
    parts = [
        f"{{{one.group.id} {one.group.target_size}->{one.size} (max: {one.group.max_size})}}"
        for one in tick.increases
        if one.group.id in groups
    ]
    return f"[{' '.join(parts)}]"


def reasons_text(tick: Tick, verdict: Verdict, groups: Groups) -> str:
    """Return the reasons of all groups, counted; as upstream without groups that do not exist."""
    given = [
        reasons
        for group_id, reasons in tick.skipped.items()
        if group_id not in verdict.skipped_refuse and _exists(group_id, groups)
    ]
    given += [
        rejection.reasons for group_id, rejection in verdict.refused.items() if _exists(group_id, groups)
    ]
    # Hundreds of groups refuse in the same words.
    counts: dict[str, int] = {}
    for reasons, number in Counter(given).items():
        for text in reasons:
            counts[text] = counts.get(text, 0) + number
    return ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))


def _exists(group_id: str, groups: Groups) -> bool:
    group = groups.get(group_id)
    return group is not None and group.exists


def _real(tick: Tick, pods: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in pods if (pod.metadata.namespace, pod.metadata.name) not in tick.demand.virtual]
