"""Objects of a captured cluster as manifests, reduced to what decides about pods and nodes.

Environment variables, commands, volumes and annotations stay behind: they may hold secrets, and no loop reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubetide.horizontal.facts.views import HpaView
from kubetide.objects.base import Json
from kubetide.objects.kinds import VPAS
from kubetide.objects.meta import ApiObject
from kubetide.objects.pod import Pod
from kubetide.units.quantity import milli
from kubetide.vertical.recommender.facts.views import VpaView

_CONTAINER = ("name", "image", "resources", "ports", "restartPolicy")
_POD = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "terminationGracePeriodSeconds",
    "hostNetwork",
    "overhead",
    "resources",
    "restartPolicy",
)
_KINDS = {
    "deployments": ("apps/v1", "Deployment", ("replicas", "selector", "strategy")),
    "stateful_sets": (
        "apps/v1",
        "StatefulSet",
        ("replicas", "selector", "serviceName", "podManagementPolicy"),
    ),
    "daemon_sets": ("apps/v1", "DaemonSet", ("selector",)),
    "pdbs": ("policy/v1", "PodDisruptionBudget", ("minAvailable", "maxUnavailable", "selector")),
    "namespaces": ("v1", "Namespace", ()),
}
_MADE_BY_THE_RUN = ("default", "kube-system", "kube-public", "kube-node-lease")


def manifest_of(field: str, item: ApiObject) -> Json | None:
    """Return one object as a manifest; None for one that every cluster has."""
    api_version, kind, fields = _KINDS[field]
    if field == "namespaces" and item.metadata.name in _MADE_BY_THE_RUN:
        return None
    found: Json = {"apiVersion": api_version, "kind": kind, "metadata": _meta(item.metadata)}
    if fields:
        spec = msgspec.to_builtins(item)["spec"]
        found["spec"] = _some(spec, fields)
        if "template" in spec:
            found["spec"]["template"] = _template(spec["template"])
    return found


def pod_manifest(pod: Pod) -> Json:
    """Return a pod by itself as a manifest."""
    spec = _template({"spec": msgspec.to_builtins(pod.spec)})["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _meta(pod.metadata), "spec": spec}


def hpa_manifest(view: HpaView) -> Json:
    """Return an HPA as a manifest."""
    meta = {"name": view.name, "namespace": view.namespace}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {**meta, **({"annotations": dict(view.annotations)} if view.annotations else {})},
        "spec": msgspec.to_builtins(view.spec),
    }


def vpa_manifest(view: VpaView, spec: Json | None, workload: tuple[str, str, str]) -> Json:
    """Return a VPA as a manifest: with the spec in the updater's records, else with what the recommender's show."""
    if spec is None:
        spec = {
            "targetRef": {"apiVersion": "apps/v1", "kind": workload[0], "name": workload[2]},
            "updatePolicy": {"updateMode": view.mode or "Off"},
            "recommenders": [{"name": name} for name in view.recommenders],
            "resourcePolicy": None if view.policy is None else msgspec.to_builtins(view.policy),
        }
    meta = {"name": view.name, "namespace": view.namespace}
    shown = {name: value for name, value in spec.items() if value}
    return {"apiVersion": VPAS.api_version, "kind": VPAS.kind, "metadata": meta, "spec": shown}


def _meta(meta: Any) -> Json:
    found = {"name": meta.name}
    if meta.namespace:
        found["namespace"] = meta.namespace
    if meta.labels:
        found["labels"] = dict(meta.labels)
    return found


def _template(template: Json) -> Json:
    spec = template["spec"]
    lists = {
        name: [_some(container, _CONTAINER) for container in spec[name]]
        for name in ("initContainers", "containers")
        if spec.get(name)
    }
    labels = (template.get("metadata") or {}).get("labels")
    return {**({"metadata": {"labels": labels}} if labels else {}), "spec": {**_some(spec, _POD), **lists}}


def _some(value: Mapping[str, Any], names: tuple[str, ...]) -> Json:
    return {name: value[name] for name in names if value.get(name) is not None}


def limit_of(field: str, item: ApiObject) -> float | None:
    """Return the CPU limit of a workload's pods in milli-CPU; None where a container has none."""
    template = msgspec.to_builtins(item)["spec"].get("template") or {}
    limits = [
        ((container.get("resources") or {}).get("limits") or {}).get("cpu")
        for container in (template.get("spec") or {}).get("containers") or ()
    ]
    return (
        None
        if not limits or None in limits or field == "namespaces"
        else float(sum(milli(str(one)) for one in limits))
    )
