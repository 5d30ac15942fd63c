"""What a person can do about an HPA of which no number, or not every metric, is known, or whose replicas get no node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubetide.explain.reasons import Reason
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView

UNDECIDED: Final[Mapping[str, str]] = {
    "PodsUncertain": "let one HPA alone have these pods: put all metrics into it, or make the selectors of the targets differ",
    "SelectorMissing": "let the scale of the target name a selector",
    "ScaleUnreadable": "see whether the target of scaleTargetRef exists and has a scale: kubectl get KIND NAME --subresource=scale",
    "BoundsCrossed": "let minReplicas be at most maxReplicas",
}
"""Reasons for which no number is decided until somebody changes an object, and what is to be changed."""

_NODES: Final = {
    "NodesRefused": (
        "kubetide explain nodegroup says of each group why it takes none, kubetide explain pod of a replica that waits "
        "what would help"
    )
}

_METRICS: Final[Mapping[str, str]] = {
    "FailedGetResourceMetric": "see whether kubectl top pods has the pods: metrics-server serves this metric",
    "FailedGetContainerResourceMetric": "see whether kubectl top pods --containers has the container",
    "FailedGetPodsMetric": "see whether the custom metrics API serves the metric of these pods",
    "FailedGetObjectMetric": "see whether the custom metrics API serves the metric of this object",
    "FailedGetExternalMetric": "see whether the external metrics API serves the metric, and its selector names a series",
}
"""What is to be looked at, by the reason of the condition."""

OF_PODS: Final = frozenset(
    {"FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetPodsMetric"}
)
"""Reasons of metrics that are measured by pod."""

_REQUEST: Final = re.compile(r"missing request for (\S+) in container (\S+)")


def way_out_of_pods(spec: Autoscaler, scale: ScaleView, pods: int, unplaced: Sequence[str]) -> str:
    """Return why no metric of the pods can be measured, whoever serves it, and what to do; empty if some pods have a node.

    Args:
        spec: The HPA.
        scale: The scale of its target.
        pods: How many pods match the selector.
        unplaced: Names of those that no node has taken.
    """
    if not pods:
        return f"it counts no pod: see whether {spec.reference} makes its pods, and with the labels {scale.selector}"
    if len(unplaced) == pods:
        return f"see why its pods have no node: kubetide explain pod {spec.key[0]}/{unplaced[0]}"
    return ""


def way_out_of_metric(reason: str, text: str) -> str:
    """Return what a person can do about a metric that failed, by the reason and the words of the condition; empty where nothing is known."""
    if (missing := _REQUEST.search(text)) is not None:
        return f"set resources.requests.{missing[1]} of container {missing[2]}, or use a target of type AverageValue"
    return _METRICS.get(reason, "")


def way_out(reasons: Sequence[Reason], metrics: Iterable[str]) -> str:
    """Return what a person can do about an HPA: why it is undecided or has no nodes, then ``metrics``, the ways out of its metrics."""
    codes = {**UNDECIDED, **_NODES}
    known = (*(codes.get(reason.code, "") for reason in reasons), *metrics)
    return "; ".join(dict.fromkeys(filter(None, known)))
