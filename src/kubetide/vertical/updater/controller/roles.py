"""What the updater asks of the API server; the tests hold the chart's role equal to this table.

Source: the requests themselves; upstream's roles of the updater allow more.
"""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, EVENTS, Grant, Role

UPDATER: Final = Role(
    "ClusterRole",
    "kubetide-updater",
    (
        Grant(CACHED, "", ("limitranges", "pods", "replicationcontrollers")),
        Grant(CACHED, "apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
        Grant(CACHED, "batch", ("cronjobs", "jobs")),
        Grant(CACHED, "autoscaling.k8s.io", ("verticalpodautoscalers",)),
        Grant(("get",), "*", ("*/scale",)),
        # Whether the admission controller answers.
        Grant(("get",), "coordination.k8s.io", ("leases",), ("vpa-admission-controller",)),
        Grant(("create",), "", ("pods/eviction",), acting=True),
        Grant(("patch",), "", ("pods", "pods/resize"), acting=True),
        EVENTS,
    ),
)
