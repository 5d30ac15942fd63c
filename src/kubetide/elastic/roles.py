"""The API requests of the loop."""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, EVENTS, Grant, Role

ELASTIC: Final = Role(
    "ClusterRole",
    "kubetide-elastic",
    (
        Grant(CACHED, "kubetide.dev", ("elasticworkloads",)),
        Grant(CACHED, "autoscaling", ("horizontalpodautoscalers",)),
        Grant(CACHED, "autoscaling.k8s.io", ("verticalpodautoscalers",)),
        Grant(("patch",), "kubetide.dev", ("elasticworkloads/status",), acting=True),
        EVENTS,
    ),
)
