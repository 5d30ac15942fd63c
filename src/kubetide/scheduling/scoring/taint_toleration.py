"""TaintToleration: prefers nodes with fewer PreferNoSchedule taints that the pod does not tolerate."""

from __future__ import annotations

import numpy as np

from kubetide.objects.node import Taint
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.taint_toleration import tolerates
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.scoring.base import Incoming, Scored, scaled
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector

_SOFT = "PreferNoSchedule"

_Sets = tuple[list[tuple[Taint, ...]], Int64Vector]


class TaintToleration:
    """Source: kube-scheduler v1.36 TaintToleration, score phase."""

    name = "TaintToleration"

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:  # noqa: ARG002  # the protocol's form
        return len(_sets(cluster)[0]) > 1

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        sets, codes = _sets(cluster)
        if not any(sets):
            return scaled(np.zeros(len(feasible), np.int64), reverse=True)
        comparison = cluster.facts.taint_comparison
        counts = np.array([_untolerated(pod.pod_class, one, comparison=comparison) for one in sets], np.int64)
        raw: Int64Vector = counts.take(codes[feasible])
        return scaled(raw, reverse=True)


def _sets(cluster: ScoredSnapshot) -> _Sets:
    sets: _Sets = cluster.of_nodes(_SOFT, lambda: _soft_taints(cluster.rows))
    return sets


def _untolerated(pod: PodClass, taints: tuple[Taint, ...], *, comparison: bool) -> int:
    listed = [one for one in pod.tolerations if one.effect in {"", _SOFT}]
    return sum(not tolerates(listed, taint, comparison=comparison) for taint in taints)


def _soft_taints(rows: Rows) -> _Sets:
    """Return the different sets of soft taints, and which of them each row has."""
    sets: dict[tuple[Taint, ...], int] = {}
    codes = np.zeros(rows.n, np.int64)
    for row, node in enumerate(rows.nodes):
        taints = tuple([taint for taint in node.spec.taints or () if taint.effect == _SOFT])
        codes[row] = sets.setdefault(taints, len(sets))
    return list(sets), codes
