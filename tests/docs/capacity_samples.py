"""Requests for capacity as an API server sends them."""

from __future__ import annotations

CONDITIONS = [
    {
        "type": "Provisioned",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-03-02T08:00:00Z",
        "reason": "CapacityIsFound",
        "message": "Capacity is found in the cluster",
    }
]


def capacity_samples(meta, template):
    """Return one of each kind."""
    return (
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": meta, "template": template},
        {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": meta,
            "spec": {
                "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
                "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 6}],
                "parameters": {"noRetry": "true"},
            },
            "status": {
                "conditions": CONDITIONS,
                "provisioningClassDetails": {"schedulablePodSets": '["worker"]'},
            },
        },
        {
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityBuffer",
            "metadata": meta,
            "spec": {
                "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
                "podTemplateRef": {"name": "worker"},
                "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
                "replicas": 3,
                "percentage": 20,
                "limits": {"cpu": "10"},
            },
            "status": {
                "podTemplateRef": {"name": "worker"},
                "replicas": 3,
                "podTemplateGeneration": 1,
                "conditions": CONDITIONS,
                "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            },
        },
        {
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityQuota",
            "metadata": meta,
            "spec": {
                "selector": {"matchLabels": {"pool": "gpu"}},
                "limits": {"resources": {"nodes": "10", "cpu": "320"}},
            },
            "status": {
                "used": {"resources": {"nodes": "2", "cpu": "64"}},
                "conditions": CONDITIONS,
                "observedGeneration": 1,
            },
        },
    )
