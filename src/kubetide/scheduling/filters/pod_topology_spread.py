"""PodTopologySpread: spreads pods over the domains of a label within the allowed skew."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.inter_pod_terms import TermJudge, spread_terms
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import ERROR, UNSCHEDULABLE, Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = f"{REASON} (missing required label)"


class PodTopologySpread:
    """Source: kube-scheduler v1.36 PodTopologySpread, DoNotSchedule constraints.

    A node takes part in a constraint when it has the labels of all constraints and the policies let
    it in; nodes that take no part are evaluated all the same.
    """

    name = "PodTopologySpread"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:  # noqa: ARG002  # the protocol's form
        if not pod.spread_error:
            return None
        message = (
            f"get constraints from pod: obtaining pod's hard topology spread constraints: {pod.spread_error}"
        )
        reason = f'running PreFilter plugin "{self.name}": {message}'
        return Refusal(plugin=self.name, reasons=(reason,), code=ERROR, phase="PreFilter", detail=message)

    def judge(self, pod: PodClass, rows: Rows) -> TermJudge | None:
        return TermJudge(spread_terms(pod, rows)) if pod.spread else None

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        for one in spread_terms(pod, rows):
            if not one.label.codes[row]:
                return Refusal(
                    plugin=self.name,
                    reasons=(MISSING_LABEL,),
                    detail=f"the node has no label {one.topology_key}",
                )
            if one.skewed(row):
                found = one.table.count(int(one.label.codes[row]))
                domains, needed = one.table.domains, one.rule.min_domains
                few = "" if domains >= needed else f", and {domains} of minDomains {needed} domains"
                most = f"at most {one.most()} for one more (maxSkew {one.rule.max_skew}{few})"
                detail = f"{found} pods in its {one.topology_key}, {most}"
                return Refusal(plugin=self.name, reasons=(REASON,), code=UNSCHEDULABLE, detail=detail)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        if not pod.spread:
            return []
        missing = np.zeros(rows.n, np.bool_)
        skewed = np.zeros(rows.n, np.bool_)
        for one in spread_terms(pod, rows):
            without = one.label.codes[: rows.n] == 0
            # The first constraint that fails gives the reason.
            still = ~(missing | skewed)
            missing |= still & without
            skewed |= still & ~without & ~one.nodes()
        return [(REASON, skewed), (MISSING_LABEL, missing)]
