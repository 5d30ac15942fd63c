"""The API requests of the recommender; tests compare the chart's role with this table.

Source: the requests themselves; upstream's roles of the recommender allow more.
"""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, Grant, Role

_GROUP = "autoscaling.k8s.io"

RECOMMENDER: Final = Role(
    "ClusterRole",
    "kubetide-recommender",
    (
        Grant(CACHED, "", ("events", "pods", "replicationcontrollers")),
        Grant(CACHED, "apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
        Grant(CACHED, "batch", ("cronjobs", "jobs")),
        Grant(CACHED, "autoscaling", ("horizontalpodautoscalers",)),
        Grant(CACHED, _GROUP, ("verticalpodautoscalers", "verticalpodautoscalercheckpoints")),
        # A target may be of any kind that has a scale.
        Grant(("get",), "*", ("*/scale",)),
        Grant(("list",), "metrics.k8s.io", ("pods",)),
        Grant(("list",), "external.metrics.k8s.io", ("*",)),
        Grant(("patch",), _GROUP, ("verticalpodautoscalers/status",), acting=True),
        Grant(("create", "delete", "patch"), _GROUP, ("verticalpodautoscalercheckpoints",), acting=True),
    ),
)
