"""Budgets that never allow an eviction."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import Workload
from kubetide.embedded.controllers.workloads.templates import scaled_value
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.units.selectors import Selector


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the budgets that can never be met, with the number of their pods.

    Source: kube-controller-manager 1.36, disruption controller: a share is rounded up, of both fields.
    """
    for pdb in snapshot.pdbs:
        try:
            yield from _finding(snapshot, pdb)
        except ValueError as error:
            yield _made(
                pdb, f"it cannot be read: {error}", "correct its selector, minAvailable and maxUnavailable"
            )


def _finding(snapshot: Snapshot, pdb: PodDisruptionBudget) -> Iterator[Finding]:
    selector = Selector.from_object(pdb.spec.selector)
    matched = [
        workload
        for workload in snapshot.workloads.values()
        if workload.owner is None
        and workload.kind in {"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}
        and workload.metadata.namespace == pdb.metadata.namespace
        and selector.matches(workload.template.metadata.labels)
    ]
    replicas = sum(_most(snapshot, workload) for workload in matched)
    seen = _never(pdb, replicas) if replicas else ""
    if seen:
        yield _made(
            pdb,
            f"{seen} ({', '.join(one.title for one in matched)})",
            "set maxUnavailable: 1, or run at least one replica more than minAvailable",
        )


def _made(pdb: PodDisruptionBudget, seen: str, fix: str) -> Finding:
    return Finding(
        check="budgets",
        severity="warning",
        object=f"PodDisruptionBudget {pdb.metadata.namespace}/{pdb.metadata.name}",
        seen=seen,
        why="no pod may ever be evicted: their nodes are never removed or upgraded, and a VPA never updates them",
        fix=fix,
    )


def _never(pdb: PodDisruptionBudget, replicas: int) -> str:
    """Return why no pod may ever go; empty where one may when all are healthy."""
    spec = pdb.spec
    if spec.max_unavailable is not None:
        if scaled_value(spec.max_unavailable, replicas, round_up=True) > 0:
            return ""
        return f"maxUnavailable is {spec.max_unavailable}"
    if spec.min_available is None:
        return ""
    least = scaled_value(spec.min_available, replicas, round_up=True)
    if least < replicas:
        return ""
    of = f", which is {least} pods" if isinstance(spec.min_available, str) else ""
    return f"minAvailable is {spec.min_available}{of}, and at most {replicas} run"


def _most(snapshot: Snapshot, workload: Workload) -> int:
    """Return how many replicas there can be: the maximum of an HPA on the workload, else what is asked for."""
    return max(
        (hpa.spec.max_replicas for hpa in snapshot.hpas if _scales(hpa, workload)),
        default=workload.replicas or 0,
    )


def _scales(hpa: HorizontalPodAutoscaler, workload: Workload) -> bool:
    target = hpa.spec.scale_target_ref
    return (target.kind, hpa.metadata.namespace, target.name) == (
        workload.kind,
        workload.metadata.namespace,
        workload.metadata.name,
    )
