"""Which pod classes an estimate can handle as integers, and which of them existing nodes affect."""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.filters.inter_pod_terms import InterPodTerms, inter_pod_terms
from kubetide.scheduling.filters.node_volume_limits import VolumeLimitsJudge
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.snapshot.snapshot import Snapshot


def plain_terms(snapshot: Snapshot, classes: Iterable[PodClass]) -> dict[PodClass, InterPodTerms]:
    """Return the terms of the classes that have no other rules; adds their guards to the snapshot."""
    plain = [one for one in classes if _is_plain(one)] if filters_in_use().shares_verdicts else []
    snapshot.add_guards(plain)
    found: dict[PodClass, InterPodTerms] = {}
    for pod_class in plain:
        judges = snapshot.prepare(pod_class).judges
        # A node that is not there yet has no CSINode, and so no limit of volumes.
        terms = inter_pod_terms(judge for judge in judges if not isinstance(judge, VolumeLimitsJudge))
        if terms is not None:
            found[pod_class] = terms
    return found


def may_borrow(snapshot: Snapshot, pod_class: PodClass, terms: InterPodTerms) -> bool:
    """Return whether an existing node might take a pod of the class while pods are only added to new nodes.

    Spreading by hostname never lets in more than it would if new nodes had any number of pods.
    """
    nodes = snapshot.fits_alone(pod_class) & ~snapshot.unschedulable
    for spread in terms.spread:
        if spread.topology_key == HOSTNAME and spread.table.domains:
            nodes &= spread.nodes_at_best()
    for apart in terms.apart:
        nodes &= apart.nodes()
    return bool(nodes.any())


def _is_plain(pod_class: PodClass) -> bool:
    if pod_class.error or pod_class.terms_error or pod_class.spread_error:
        return False
    if pod_class.devices is not None or pod_class.features or pod_class.names_nodes:
        return False
    # Amounts beyond what an int64 holds may wrap: a pod would then leave its node more than it had.
    return all(amount >= 0 for _, amount in pod_class.charges)
