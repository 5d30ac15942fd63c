"""TaintToleration: NoSchedule and NoExecute taints keep off pods that do not tolerate them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubetide.objects.node import Taint
from kubetide.objects.pod import Toleration
from kubetide.scheduling.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.rows import BoolVector, Rows

REASON = "node(s) had untolerated taint(s)"


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any toleration matches the taint.

    Empty effect or key match any; Exists does not look at values. Gt and Lt match nothing: their
    feature gate is off by default. Source: api/core/v1 Toleration, v1.36.
    """
    return any(_matches(toleration, taint) for toleration in tolerations)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated(pod: PodClass, taints: Iterable[Taint]) -> Taint | None:
    """Gives the first NoSchedule or NoExecute taint that the pod does not tolerate, or None."""
    for taint in taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerates(pod.tolerations, taint):
            return taint
    return None


class TaintToleration:
    """Source: kube-scheduler v1.36 TaintToleration."""

    name = "TaintToleration"

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        verdicts = np.array([untolerated(pod, taints) is None for taints in rows.taint_sets], np.bool_)
        return None if verdicts.all() else verdicts.take(rows.taint_codes)

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        taint = untolerated(pod, rows.nodes[row].spec.taints or ())
        if taint is None:
            return None
        value = f"={taint.value}" if taint.value else ""
        return Refusal(plugin=self.name, reasons=(REASON,), detail=f"{taint.key}{value}:{taint.effect}")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        passes = self.passes(pod, rows)
        return [] if passes is None else [(REASON, ~passes)]
