"""The API requests of the loop; tests compare the chart's roles and the real requests with this table.

Source: the requests themselves; upstream's role of Cluster Autoscaler v1.36 allows more.
"""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, EVENTS, Grant, Role

_CAPACITY: Final = "autoscaling.x-k8s.io"
_VALUE: Final = "options.capacityApis"

NODES: Final = Role(
    "ClusterRole",
    "kubetide-nodes",
    (
        Grant(
            CACHED,
            "",
            (
                "namespaces",
                "nodes",
                "persistentvolumeclaims",
                "persistentvolumes",
                "pods",
                "replicationcontrollers",
            ),
        ),
        Grant(
            CACHED,
            "storage.k8s.io",
            ("csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"),
        ),
        Grant(CACHED, "resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices")),
        Grant(CACHED, "apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
        Grant(CACHED, "batch", ("jobs",)),
        Grant(CACHED, "policy", ("poddisruptionbudgets",)),
        Grant(
            CACHED,
            _CAPACITY,
            ("capacitybuffers", "capacityquotas", "provisioningrequests"),
            value=_VALUE,
        ),
        Grant(CACHED, "", ("podtemplates", "resourcequotas"), value=_VALUE),
        Grant(
            ("patch",),
            _CAPACITY,
            ("capacitybuffers/status", "capacityquotas/status", "provisioningrequests/status"),
            acting=True,
            value=_VALUE,
        ),
        Grant(("delete",), _CAPACITY, ("provisioningrequests",), acting=True, value=_VALUE),
        Grant(("create", "get", "update"), "", ("podtemplates",), acting=True, value=_VALUE),
        # A buffer's template is copied from a pod or from its workload, which are read whole for it.
        Grant(("get",), "", ("pods", "replicationcontrollers"), acting=True, value=_VALUE),
        Grant(("get",), "apps", ("deployments", "replicasets", "statefulsets"), acting=True, value=_VALUE),
        Grant(("get",), "batch", ("jobs",), acting=True, value=_VALUE),
        Grant(("create",), "", ("pods",), acting=True, value="options.dryRunPods"),
        Grant(("get", "update"), "", ("nodes",), acting=True),
        Grant(("create",), "", ("pods/eviction",), acting=True),
        Grant(("patch",), "", ("pods/status",), acting=True, value="options.nominatePods"),
        EVENTS,
    ),
)

NODES_STATUS: Final = Role(
    "Role",
    "kubetide-nodes",
    (
        Grant(("get",), "", ("configmaps",), ("cluster-autoscaler-priority-expander",)),
        Grant(("get", "update", "delete"), "", ("configmaps",), ("cluster-autoscaler-status",), acting=True),
        Grant(("get", "update"), "", ("configmaps",), ("kubetide-node-templates",), acting=True),
        # What is created has no name yet that a rule could hold for.
        Grant(("create",), "", ("configmaps",), acting=True),
    ),
)
