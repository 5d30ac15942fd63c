"""The API requests of the admission controller; tests compare the chart's roles with this table.

Source: the requests themselves; upstream's roles of the admission controller allow more.
"""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, Grant, Role

ADMISSION: Final = Role(
    "ClusterRole",
    "kubetide-admission",
    (
        Grant(CACHED, "", ("limitranges", "replicationcontrollers")),
        Grant(CACHED, "apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
        Grant(CACHED, "batch", ("cronjobs", "jobs")),
        Grant(CACHED, "autoscaling.k8s.io", ("verticalpodautoscalers",)),
        Grant(("get",), "*", ("*/scale",)),
        Grant(
            ("get", "patch"),
            "admissionregistration.k8s.io",
            ("mutatingwebhookconfigurations",),
            ("vpa-webhook-config",),
            acting=True,
        ),
        # What is created has no name yet that a rule could hold for.
        Grant(("create",), "admissionregistration.k8s.io", ("mutatingwebhookconfigurations",), acting=True),
        Grant(
            ("get", "update"), "coordination.k8s.io", ("leases",), ("vpa-admission-controller",), acting=True
        ),
        Grant(("create",), "coordination.k8s.io", ("leases",), acting=True),
    ),
)
