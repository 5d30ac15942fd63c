"""Which groups are equivalent for a pod: what makes one of them take it does so with each of the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kubetide.nodes.explain.waiting.counterfactual import Supposing
from kubetide.nodes.explain.waiting.way_out import WayOut
from kubetide.nodes.reasons import BACKED_OFF, USELESS
from kubetide.nodes.scale_up.choosing.options import group_of
from kubetide.nodes.scale_up.tick import Tick, Verdict
from kubetide.nodes.state import State
from kubetide.objects.pod import Pod


class SharedWaysOut:
    """Decides about one of each set of equivalent groups; the others have its way out, in the words of that group."""

    def __init__(self, supposing: Supposing, equivalence: Callable[[str], Hashable]) -> None:
        self._supposing = supposing
        self._equivalence = equivalence
        self._known: dict[Hashable, WayOut | None] = {}

    def way_out(self, group_id: str) -> WayOut | None:
        """Return what would make a group equivalent to this one take the pod; None if no way out is known."""
        equivalence = self._equivalence(group_id)
        if equivalence not in self._known:
            self._known[equivalence] = self._supposing.way_out(group_id)
        return self._known[equivalence]


def equivalence_of(state: State, tick: Tick, pod: Pod, verdict: Verdict | None, group_id: str) -> Hashable:
    """Return what two groups have in common that the same changes help; the group itself where nobody can say.

    Of labels, those count that the pod selects nodes by. Pods with rules about other pods or with volumes, and groups
    that wait, are each a case of its own.
    """
    spec, template = pod.spec, tick.templates[group_id]
    if template is None or spec.affinity or spec.topology_spread_constraints or spec.volumes:
        return group_id
    said = tick.skipped.get(group_id, ())
    refusals = [
        found
        for of_groups in (() if verdict is None else (verdict.rejected, verdict.skipped_refuse))
        if (found := of_groups.get(group_id)) is not None
    ]
    if BACKED_OFF in said or any(USELESS in found.reasons for found in refusals):
        return group_id
    node, group = template.node, group_of(state, tick, group_id)
    labels = node.metadata.labels or {}
    return (
        said,
        # One that takes the pod may have no node left for it.
        () if said or refusals else (group.max_size - group.target_size,),
        tuple(found.text for found in refusals),
        group.price_per_hour,
        tuple(sorted((node.status.allocatable or {}).items())),
        tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()),
        tuple(labels.get(key) for key in sorted(spec.node_selector or {})),
    )
