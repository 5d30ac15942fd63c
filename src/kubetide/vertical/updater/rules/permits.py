"""Options beyond upstream that hold updates back: windows of the week, and most evictions within a minute."""

from __future__ import annotations

from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.time import Instant
from kubetide.vertical.updater.memory import Memory
from kubetide.vertical.updater.rules.windows import ANNOTATION, read_windows
from kubetide.vertical.updater.settings import Settings


def is_open(vpa: VerticalPodAutoscaler, settings: Settings, now: Instant) -> bool:
    """Return whether pods of the VPA may be changed now. Raises: WindowsError."""
    text = (vpa.metadata.annotations or {}).get(ANNOTATION) or settings.update_windows
    return not text or read_windows(text).hold(now)


def beyond_most(settings: Settings, memory: Memory, namespace: str, now: Instant) -> str:
    """Return which limit one more eviction in the namespace would pass; empty for none."""
    if not settings.limits_evictions:
        return ""
    lately = memory.evicted_lately(now)
    for count, most, where in (
        (lately.total(), settings.max_evictions_per_minute, "the cluster"),
        (lately[namespace], settings.max_namespace_evictions_per_minute, f"namespace {namespace}"),
    ):
        if most and count >= most:
            return f"{count} of at most {most} in {where}"
    return ""
