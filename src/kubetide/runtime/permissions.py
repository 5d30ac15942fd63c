"""What each loop asks of the API server, as roles: the table behind ``deploy/`` and behind hints about refusals.

A loop that only advises needs the reads; the rest is granted with ``act``. The tests hold the roles of the
Helm chart equal to this table, and the table equal to what the loops ask for.

Source: the requests themselves; upstream's ``system:controller:horizontal-pod-autoscaler`` and the role of
Cluster Autoscaler v1.36 allow more.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple


class Grant(NamedTuple):
    """One rule of a role.

    Attributes:
        resources: Plural names, a subresource after a slash; ``*`` stands for any.
        names: Of the only objects that it holds for; empty for all.
        acting: Whether it is needed only by a run that acts.
        value: The value of the chart that grants it; empty for what every release gets.
    """

    verbs: tuple[str, ...]
    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...] = ()
    acting: bool = False
    value: str = ""

    def allows(self, verb: str, group: str, resource: str) -> bool:
        """Whether it grants the verb on some object; the names play no part."""
        subresource = resource.partition("/")[2]
        named = {"*", resource, f"*/{subresource}"} if subresource else {"*", resource}
        return verb in self.verbs and self.group in {"*", group} and not named.isdisjoint(self.resources)


class Role(NamedTuple):
    """A role of ``deploy/``, by the name that it has in a release called ``kubetide``."""

    kind: Literal["ClusterRole", "Role"]
    name: str
    grants: tuple[Grant, ...]


_CACHED = ("list", "watch")
_EVENTS = Grant(("create", "patch"), "", ("events",), acting=True)

HORIZONTAL: Final = Role(
    "ClusterRole",
    "kubetide-horizontal",
    (
        Grant(_CACHED, "", ("pods",)),
        Grant(_CACHED, "apps", ("deployments", "replicasets")),
        Grant(_CACHED, "autoscaling", ("horizontalpodautoscalers",)),
        # A target may be of any kind that has a scale.
        Grant(("get",), "*", ("*/scale",)),
        # What others have scaled counts for the rate limits of advice.
        Grant(("list",), "", ("events",)),
        Grant(("list",), "metrics.k8s.io", ("pods",)),
        Grant(("get",), "custom.metrics.k8s.io", ("*",)),
        Grant(("list",), "external.metrics.k8s.io", ("*",)),
        Grant(("update",), "*", ("*/scale",), acting=True),
        Grant(("patch",), "autoscaling", ("horizontalpodautoscalers/status",), acting=True),
        Grant(("patch",), "", ("pods",), acting=True, value="options.idlestFirst"),
        _EVENTS,
    ),
)

NODES: Final = Role(
    "ClusterRole",
    "kubetide-nodes",
    (
        Grant(_CACHED, "", ("namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods")),
        Grant(
            _CACHED,
            "storage.k8s.io",
            ("csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"),
        ),
        Grant(_CACHED, "resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices")),
        Grant(_CACHED, "apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
        Grant(_CACHED, "batch", ("jobs",)),
        Grant(_CACHED, "policy", ("poddisruptionbudgets",)),
        Grant(("get", "patch"), "", ("nodes",), acting=True),
        Grant(("create",), "", ("pods/eviction",), acting=True),
        _EVENTS,
    ),
)

NODES_STATUS: Final = Role(
    "Role",
    "kubetide-nodes",
    (
        Grant(("patch", "delete"), "", ("configmaps",), ("cluster-autoscaler-status",), acting=True),
        # What is created has no name yet that a rule could hold for.
        Grant(("create",), "", ("configmaps",), acting=True),
    ),
)

LEASES: Final = Role(
    "Role",
    "kubetide-leases",
    (
        Grant(
            ("get", "patch"),
            "coordination.k8s.io",
            ("leases",),
            ("cluster-autoscaler", "kubetide"),
            acting=True,
        ),
        Grant(("create",), "coordination.k8s.io", ("leases",), acting=True),
        Grant(("create",), "", ("events",), acting=True),
    ),
)

ROLES: Final = (HORIZONTAL, NODES, NODES_STATUS, LEASES)

# The words of kube-apiserver's RBAC authorizer (v1.36).
_REFUSED = re.compile(r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"')


def with_hint(message: str, controllers: tuple[str, ...]) -> str:
    """Gives an error's text, and where it is a refusal that a role of ``deploy/`` would mend, that role's name.

    Args:
        controllers: The loops that run: the roles of others are not offered.
    """
    refused = _REFUSED.search(message)
    if refused is None:
        return message
    offered = {"horizontal": (HORIZONTAL,), "nodes": (NODES, NODES_STATUS)}
    for role in (*(role for name in controllers for role in offered[name]), LEASES):
        for grant in role.grants:
            if grant.allows(refused["verb"], refused["group"], refused["resource"]):
                where = f" with {grant.value}=true" if grant.value else ""
                return f"{message}; {role.kind} {role.name} of deploy/ grants it{where}"
    return message
