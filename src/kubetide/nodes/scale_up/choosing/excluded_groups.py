"""Groups that would take pods and are left out of a verdict all the same: for zones of their nodes, and for shortages."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubetide.nodes.reasons import OUT_OF_STOCK
from kubetide.nodes.scale_up.tick import Rejection, Tick, Verdict
from kubetide.nodes.templates.spread import Ways
from kubetide.scheduling import PodClass


def asks_of_labels(pod_class: PodClass) -> bool:
    """Return whether the pods, or their volumes, may ask for values of a node's labels."""
    return pod_class.selection is not None or bool(pod_class.claims)


def keep_to_every_way(verdict: Verdict, ways: Mapping[str, Ways]) -> None:
    """Reject groups of which one of the nodes that may come lacks what the pods ask of labels."""
    pod_class = verdict.pods.pod_class
    if not ways or not asks_of_labels(pod_class):
        return
    rejected = {
        name: Rejection(refusal.reasons, refusal)
        for name in verdict.accepted
        if name in ways and (refusal := ways[name].refusal(pod_class)) is not None
    }
    if rejected:
        verdict.accepted = {name: None for name in verdict.accepted if name not in rejected}
        verdict.rejected.update(rejected)


def keep_last_choices(tick: Tick, groups: Collection[str]) -> None:
    """Leave groups whose machines were out of stock lately to the pods that no other group takes.

    A shortage that is over is thus noticed as early as by Cluster Autoscaler where nothing else is to be had.
    """
    for verdict in tick.verdicts:
        last = [name for name in verdict.accepted if name in groups]
        if last and len(last) < len(verdict.accepted):
            verdict.accepted = {name: None for name in verdict.accepted if name not in groups}
            verdict.rejected.update(dict.fromkeys(last, Rejection((OUT_OF_STOCK,))))
    for name in groups:
        if not any(name in verdict.accepted for verdict in tick.verdicts):
            tick.skipped[name] = (OUT_OF_STOCK,)
            for verdict in tick.verdicts:
                verdict.rejected.pop(name, None)
