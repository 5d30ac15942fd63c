"""VolumeBinding: bound claims must be reachable; others need a free or a provisionable volume."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubetide.objects.node import Node
from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.binding_rules import (
    PodClaims,
    label_keys,
    match_static,
    provisioning_problem,
    reaches,
    sort_claims,
)
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import ERROR, Refusal
from kubetide.scheduling.snapshot.volumes import SELECTED_NODE, ModeUnknown, Volumes, is_made_for
from kubetide.units.vectors import BoolVector

NOT_FOUND = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding:
    """Source: kube-scheduler v1.36 VolumeBinding.

    A free volume is taken for a claim when it is of the claim's class, large enough and reachable, the
    smallest first; else one would be made if the class has a provisioner.
    """

    name = "VolumeBinding"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:
        volumes = rows.facts.volumes
        if volumes is None or not pod.claims:
            return None
        problem = _problem(pod, volumes)
        if problem:
            return Refusal(plugin=self.name, reasons=(problem,), phase="PreFilter", detail=problem)
        try:
            claims = sort_claims(pod, volumes)
        except ModeUnknown as error:
            reason = f'running PreFilter plugin "{self.name}": {error}'
            return Refusal(
                plugin=self.name, reasons=(reason,), code=ERROR, phase="PreFilter", detail=str(error)
            )
        if not claims.immediate:
            return None
        return Refusal(plugin=self.name, reasons=(UNBOUND_IMMEDIATE,), phase="PreFilter")

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        found = self.failures(pod, rows)
        if not found:
            return None
        failed = np.zeros(rows.n, np.bool_)
        for _, mask in found:
            failed |= mask
        return ~failed

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        volumes = rows.facts.volumes
        if volumes is None or not pod.claims or self.everywhere(pod, rows) is not None:
            return None
        reasons = _reasons(sort_claims(pod, volumes), volumes, rows.nodes[row])
        if not reasons:
            return None
        names = ", ".join(use.name for use in pod.claims)
        return Refusal(plugin=self.name, reasons=reasons, detail=f"claims {names}")

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        volumes = rows.facts.volumes
        if volumes is None or not pod.claims or self.everywhere(pod, rows) is not None:
            return []
        claims = sort_claims(pod, volumes)
        reasons = (NO_SPACE, BIND_CONFLICT, NODE_CONFLICT, NOT_FOUND)
        masks = {reason: np.zeros(rows.n, np.bool_) for reason in reasons}
        # Nodes that agree in the labels that matter are evaluated once.
        known: dict[tuple[str | None, ...], tuple[str, ...]] = {}
        keys = label_keys(claims, volumes)
        selected = any(SELECTED_NODE in (one.metadata.annotations or {}) for one in claims.waiting)
        for row, node in enumerate(rows.nodes):
            labels: Mapping[str, str] = labels_of(node)
            kind = (node.metadata.name if selected else None, *(labels.get(key) for key in keys))
            found = known.get(kind)
            if found is None:
                found = known[kind] = _reasons(claims, volumes, node)
            for reason in found:
                masks[reason][row] = True
        return list(masks.items())


def _problem(pod: PodClass, volumes: Volumes) -> str:
    """Return what is wrong with the claims for every node alike."""
    for use in pod.claims:
        claim = volumes.claim(use)
        if claim is None:
            if use.owner:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
            return f'persistentvolumeclaim "{use.name}" not found'
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{use.name}" is being deleted'
        if use.owner and not is_made_for(claim, use):
            made_for = f"pod {use.namespace}/{use.owner[1]} (pod is not owner)"
            return f"PVC {use.namespace}/{use.name} was not created for {made_for}"
    return ""


def _reasons(claims: PodClaims, volumes: Volumes, node: Node) -> tuple[str, ...]:
    """Return the reasons against one node, sorted as the events of kube-scheduler list them."""
    labels = labels_of(node)
    lost = _problem_of_bound(claims, volumes, labels)
    problem = ""
    elsewhere = False
    to_find, to_make = [], []
    for claim in claims.waiting:
        chosen = (claim.metadata.annotations or {}).get(SELECTED_NODE)
        if chosen is None:
            to_find.append(claim)
        else:
            elsewhere |= chosen != node.metadata.name
            to_make.append(claim)
    if elsewhere:
        problem = BIND_CONFLICT
    else:
        to_make += match_static(to_find, volumes, labels).left
        for claim in to_make:
            found = provisioning_problem(claim, volumes, labels)
            if found is not None:
                problem = NO_SPACE if found else BIND_CONFLICT
                break
    return tuple(sorted(reason for reason in (problem, lost) if reason))


def _problem_of_bound(claims: PodClaims, volumes: Volumes, labels: Mapping[str, str]) -> str:
    """Return what is wrong with the first bound claim that a node cannot use; empty without one."""
    for claim in claims.bound:
        volume = volumes.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            return NOT_FOUND
        if not reaches(volume, labels):
            return NODE_CONFLICT
    return ""
