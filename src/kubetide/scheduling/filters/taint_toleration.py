"""TaintToleration: NoSchedule and NoExecute taints reject pods that do not tolerate them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from kubetide.objects.node import Taint
from kubetide.objects.pod import Toleration
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) had untolerated taint(s)"

_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,18}")


def tolerates(tolerations: Iterable[Toleration], taint: Taint, *, comparison: bool = False) -> bool:
    """Return whether any toleration matches the taint.

    Empty effect or key match any; Exists does not look at values. Gt and Lt match nothing unless
    ``comparison`` says that their feature gate is on (off by default). Source: api/core/v1
    Toleration, v1.36.
    """
    return any(_matches(toleration, taint, comparison=comparison) for toleration in tolerations)


def _matches(toleration: Toleration, taint: Taint, *, comparison: bool) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    if comparison and toleration.operator in {"Gt", "Lt"}:
        have, bound = _plain_int64(taint.value), _plain_int64(toleration.value)
        if have is None or bound is None:
            return False
        return have > bound if toleration.operator == "Gt" else have < bound
    return toleration.operator == "Exists"


def _plain_int64(text: str) -> int | None:
    """Read an integer that is written the one plain way: no sign +, no leading zeros."""
    if not _PLAIN.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def untolerated(pod: PodClass, taints: Iterable[Taint], *, comparison: bool = False) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that the pod does not tolerate, or None."""
    for taint in taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerates(
            pod.tolerations, taint, comparison=comparison
        ):
            return taint
    return None


class TaintToleration:
    """Source: kube-scheduler v1.36 TaintToleration."""

    name = "TaintToleration"

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        comparison = rows.facts.taint_comparison
        verdicts = np.zeros(rows.taint_sets, np.bool_)
        for taints, code in rows.tolerable_taint_sets({one.key for one in pod.tolerations}):
            verdicts[code] = untolerated(pod, taints, comparison=comparison) is None
        return None if verdicts.all() else verdicts.take(rows.taint_codes)

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        taint = untolerated(pod, rows.nodes[row].spec.taints or (), comparison=rows.facts.taint_comparison)
        if taint is None:
            return None
        value = f"={taint.value}" if taint.value else ""
        return Refusal(plugin=self.name, reasons=(REASON,), detail=f"{taint.key}{value}:{taint.effect}")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        passes = self.passes(pod, rows)
        return [] if passes is None else [(REASON, ~passes)]
