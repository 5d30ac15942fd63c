"""Budgets that never allow an eviction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import Workload
from kubetide.embedded.controllers.workloads.templates import scaled_value
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.pod import is_finished
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
    yield from _doubled(snapshot)


def _doubled(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the budgets that share pods.

    Source: kube-apiserver 1.36, eviction: a pod of two budgets is never evicted, whatever they allow.
    """
    by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
    for pdb in sorted(snapshot.pdbs, key=lambda one: one.metadata.name):
        with suppress(ValueError):
            selector = Selector.from_object(pdb.spec.selector)
            by_namespace.setdefault(pdb.metadata.namespace, []).append((pdb, selector))
    shared: dict[tuple[str, ...], tuple[PodDisruptionBudget, list[str]]] = {}
    for pod in snapshot.pods:
        budgets = by_namespace.get(pod.metadata.namespace, ())
        if len(budgets) < 2 or is_finished(pod):
            continue
        both = [pdb for pdb, selector in budgets if selector.matches(pod.metadata.labels)]
        if len(both) > 1:
            key = (pod.metadata.namespace, *(one.metadata.name for one in both))
            shared.setdefault(key, (both[0], []))[1].append(pod.metadata.name)
    for (_, _, *others), (pdb, pods) in sorted(shared.items()):
        named = f"pod {pods[0]}" if len(pods) == 1 else f"{len(pods)} pods, {min(pods)} among them,"
        yield _made(
            pdb,
            f"{named} also belong{'s' if len(pods) == 1 else ''} to {', '.join(others)}: a pod of more than one budget "
            "cannot be evicted",
            "select each pod by one budget: delete the others, or narrow their selectors",
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
            _fix(pdb),
        )


def _fix(pdb: PodDisruptionBudget) -> str:
    """Return what lets one pod go; more replicas do not where all must be available."""
    least = pdb.spec.min_available
    if pdb.spec.max_unavailable is not None:
        return "set maxUnavailable: 1"
    instead = "set maxUnavailable: 1 in the place of minAvailable"
    if isinstance(least, str) and scaled_value(least, 100, round_up=True) >= 100:
        return instead
    return f"{instead}, or run more replicas than minAvailable asks for"


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
    of = (
        f", which is {least} {'pod' if least == 1 else 'pods'}" if isinstance(spec.min_available, str) else ""
    )
    return f"minAvailable is {spec.min_available}{of}, and at most {replicas} {'runs' if replicas == 1 else 'run'}"


def _most(snapshot: Snapshot, workload: Workload) -> int:
    """Return how many replicas there can be: the maximum of an HPA on the workload, else what is asked for."""
    return max(
        (hpa.spec.max_replicas for hpa in snapshot.every_hpa if _scales(hpa, workload)),
        default=workload.replicas or 0,
    )


def _scales(hpa: HorizontalPodAutoscaler, workload: Workload) -> bool:
    target = hpa.spec.scale_target_ref
    return (target.kind, hpa.metadata.namespace, target.name) == (
        workload.kind,
        workload.metadata.namespace,
        workload.metadata.name,
    )
