"""NodeDeclaredFeatures: the node must have declared the features that a pod's spec uses."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures:
    """Source: kube-scheduler v1.36 NodeDeclaredFeatures (beta, on), KEP-5328."""

    name = "NodeDeclaredFeatures"

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        if not pod.features:
            return None
        return np.array([not self._missing(pod, rows, row) for row in range(rows.n)], np.bool_)

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        missing = self._missing(pod, rows, row)
        if not missing:
            return None
        return Refusal(plugin=self.name, reasons=(REASON,), detail=f"not declared: {', '.join(missing)}")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        passes = self.passes(pod, rows)
        return [] if passes is None else [(REASON, ~passes)]

    @staticmethod
    def _missing(pod: PodClass, rows: Rows, row: int) -> list[str]:
        declared = rows.nodes[row].status.declared_features or ()
        return [feature for feature in pod.features if feature not in declared]
