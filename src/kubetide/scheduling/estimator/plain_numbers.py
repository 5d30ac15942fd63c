"""Which classes of pods an estimate can reckon with in plain numbers, and which of them existing nodes concern."""

from __future__ import annotations

from kubetide.scheduling.columns.rows import BoolVector
from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.filters.inter_pod_affinity import AffinityJudge
from kubetide.scheduling.filters.node_volume_limits import VolumeLimitsJudge
from kubetide.scheduling.filters.pod_topology_spread import SpreadJudge, SpreadTerm
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.snapshot.snapshot import Snapshot


def is_plain_number(snapshot: Snapshot, pod_class: PodClass) -> bool:
    """Return whether all that the class minds has the form of ``conditions``; adds its guards to the snapshot."""
    if pod_class.error or pod_class.terms_error or pod_class.spread_error:
        return False
    if not filters_in_use().shares_verdicts:
        return False
    if pod_class.devices is not None or pod_class.features or pod_class.names_nodes:
        return False
    # Amounts beyond what an int64 holds may wrap: a pod would then leave its node more than it had.
    if any(amount < 0 for _, amount in pod_class.charges):
        return False
    # A node that is not there yet has no CSINode, and so no limit of volumes.
    known = (SpreadJudge, AffinityJudge, VolumeLimitsJudge)
    return all(isinstance(judge, known) for judge in snapshot.prepare(pod_class).judges)


def may_borrow(snapshot: Snapshot, pod_class: PodClass) -> bool:
    """Return whether an existing node might take a pod of the class while pods are only added to new nodes.

    Spreading by hostname never lets in more than it would if new nodes had any number of pods.
    """
    nodes = snapshot.fits_alone(pod_class) & ~snapshot.unschedulable
    for judge in snapshot.prepare(pod_class).judges:
        if isinstance(judge, SpreadJudge):
            for spread in judge.terms:
                if spread.topology_key == HOSTNAME and spread.table.domains:
                    nodes &= _let_in(spread, len(nodes))
        elif isinstance(judge, AffinityJudge):
            for apart in (*judge.apart, *judge.guards):
                nodes &= apart.nodes()
    return bool(nodes.any())


def _let_in(spread: SpreadTerm, rows: int) -> BoolVector:
    most = spread.rule.max_skew - spread.rule.self_match + spread.table.minimum()
    allowed: BoolVector = spread.table.counts <= most
    passes: BoolVector = allowed.take(spread.label.codes[:rows])
    return passes
