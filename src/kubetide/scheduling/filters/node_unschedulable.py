"""NodeUnschedulable: cordoned nodes accept only pods that tolerate the unschedulable taint."""

from __future__ import annotations

from kubetide.objects.node import Taint
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.taint_toleration import tolerates
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) were unschedulable"

_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Source: kube-scheduler v1.36 NodeUnschedulable."""

    name = "NodeUnschedulable"

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        return None if _tolerates(pod, rows) else ~rows.unschedulable

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        if not rows.nodes[row].spec.unschedulable or _tolerates(pod, rows):
            return None
        return Refusal(plugin=self.name, reasons=(REASON,), detail="spec.unschedulable")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        return [] if _tolerates(pod, rows) else [(REASON, rows.unschedulable)]


def _tolerates(pod: PodClass, rows: Rows) -> bool:
    return tolerates(pod.tolerations, _TAINT, comparison=rows.facts.taint_comparison)
