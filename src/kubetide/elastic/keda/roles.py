"""The API requests of the loop."""

from __future__ import annotations

from typing import Final

from kubetide.loop import CACHED, EVENTS, Grant, Role

SCALED_OBJECT_ROLE: Final = Role(
    "ClusterRole",
    "kubetide-scaledobjects",
    (
        Grant(CACHED, "keda.sh", ("scaledobjects",)),
        Grant(CACHED, "autoscaling", ("horizontalpodautoscalers",)),
        Grant(CACHED, "apps", ("deployments",)),
        # A target may be of any kind that has a scale.
        Grant(("get",), "*", ("*/scale",)),
        Grant(("patch",), "keda.sh", ("scaledobjects/status",), acting=True),
        Grant(("update",), "*", ("*/scale",), acting=True),
        EVENTS,
    ),
)
