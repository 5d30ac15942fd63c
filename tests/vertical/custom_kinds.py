"""A kind of a CustomResourceDefinition with a scale, and definitions of kinds."""

from __future__ import annotations

from kubetide.objects.kinds import Kind

WHERE = {"namespace": "default"}
TABS = Kind("example.com", "v1", "CronTab", "crontabs", dict)
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def definition(kind, **subresources):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if "status" in kind.subresources:
        subresources["status"] = {}
    if subresources:
        version["subresources"] = subresources
    return {
        "metadata": {
            "name": kind.resource,
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"
            },
        },
        "spec": {
            "group": kind.group,
            "names": {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
