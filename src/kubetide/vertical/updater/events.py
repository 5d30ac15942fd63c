"""Events that the updater writes; people's scripts match on their reasons and messages.

Source: vertical-pod-autoscaler 1.8.1, pkg/updater/restriction.
"""

from __future__ import annotations

from typing import Final

from kubetide.objects.meta import Key
from kubetide.vertical.updater.decision import EventNote

COMPONENT: Final = "vpa-updater"


def evicted(pod: Key, vpa: Key, uid: str = "") -> list[EventNote]:
    """Return the events of an eviction: one about the pod, one about the VPA."""
    return [
        EventNote(
            "Pod",
            *pod,
            "EvictedByVPA",
            "Pod was evicted by VPA Updater to apply resource recommendation.",
            uid,
        ),
        EventNote(
            "VerticalPodAutoscaler",
            *vpa,
            "EvictedPod",
            f"VPA Updater evicted Pod {pod[1]} to apply resource recommendation.",
        ),
    ]


def resized(pod: Key, uid: str = "") -> EventNote:
    return EventNote("Pod", *pod, "InPlaceResizedByVPA", "Pod was resized in place by VPA Updater.", uid)


def resize_skipped(pod: Key) -> EventNote:
    return EventNote(
        "Pod",
        *pod,
        "InPlaceResizeSkipped",
        "Previously recorded in-place update was infeasible, current recommendation is not lower than previous, "
        "skipping resize",
    )
