"""NodeName: a pod that names its node runs only there."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) didn't match the requested node name"


class NodeName:
    """Source: kube-scheduler v1.36 and v1.37 NodeName."""

    name = "NodeName"

    def only_node(self, pod: PodClass, rows: Rows) -> str:
        """Return the one node that is looked at (PreFilter, since v1.37); empty for all."""
        return pod.node_name if rows.facts.minor >= 37 else ""

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        if not pod.node_name:
            return None
        passes = np.zeros(rows.n, np.bool_)
        row = rows.row_of.get(pod.node_name)
        if row is not None:
            passes[row] = True
        return passes

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        if not pod.node_name or rows.names[row] == pod.node_name:
            return None
        return Refusal(plugin=self.name, reasons=(REASON,), detail=f"spec.nodeName={pod.node_name}")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        passes = self.passes(pod, rows)
        return [] if passes is None else [(REASON, ~passes)]
