"""Samples of the kinds that applications bring beside workloads, as an API server sends them."""

from __future__ import annotations

RBAC = "rbac.authorization.k8s.io"


def _meta(name: str) -> dict[str, object]:
    return {"name": name, "namespace": "shop", "creationTimestamp": "2026-03-02T08:00:00Z"}


_RULES = [
    {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["web-0"], "verbs": ["get", "list"]},
    {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
]
_AGGREGATION = {"clusterRoleSelectors": [{"matchLabels": {"rbac.example.com/adds-to-reader": "true"}}]}
_SUBJECTS = [
    {"kind": "ServiceAccount", "name": "web", "namespace": "shop"},
    {"apiGroup": RBAC, "kind": "User", "name": "ann"},
    {"apiGroup": RBAC, "kind": "Group", "name": "staff"},
]


def _role_ref(kind: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": kind, "name": "reader"}


INERT_SAMPLES = (
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta("web"),
        "spec": {
            "type": "NodePort",
            "selector": {"app": "web"},
            "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _meta("key"),
        "type": "Opaque",
        "data": {"token": "c2VjcmV0"},
    },
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta("web")},
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": _meta("small"),
        "spec": {
            "hard": {"requests.cpu": "4", "limits.cpu": "8"},
            "scopes": ["NotTerminating"],
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["high", "medium"]}
                ]
            },
        },
        "status": {
            "hard": {"requests.cpu": "4", "limits.cpu": "8"},
            "used": {"requests.cpu": "1", "limits.cpu": "2"},
        },
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": _meta("web"),
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": ["a.example.com"]}],
            "rules": [{"host": f"{name}.example.com"} for name in "abcd"],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}},
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {
            **_meta("nginx"),
            "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"},
        },
        "spec": {
            "controller": "k8s.io/ingress-nginx",
            "parameters": {"apiGroup": "example.com", "kind": "Tuning", "name": "fast"},
        },
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta("closed"),
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
    },
    {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": _meta("reader"), "rules": _RULES},
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": _meta("reader"),
        "rules": _RULES,
        "aggregationRule": _AGGREGATION,
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": _meta("readers"),
        "roleRef": _role_ref("Role"),
        "subjects": _SUBJECTS,
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta("readers"),
        "roleRef": _role_ref("ClusterRole"),
        "subjects": _SUBJECTS,
    },
)
