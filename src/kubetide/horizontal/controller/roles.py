"""The API requests of the loop; tests compare the chart's roles and the real requests with this table.

Source: the requests themselves; upstream's ``system:controller:horizontal-pod-autoscaler`` allows more.
"""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, EVENTS, Grant, Role

HORIZONTAL: Final = Role(
    "ClusterRole",
    "kubetide-horizontal",
    (
        Grant(CACHED, "", ("pods",)),
        Grant(CACHED, "apps", ("deployments", "replicasets")),
        # Who else scales a target is seen from the watch.
        Grant(CACHED, "apps", ("statefulsets",), acting=True),
        Grant(CACHED, "autoscaling", ("horizontalpodautoscalers",)),
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
        EVENTS,
    ),
)
