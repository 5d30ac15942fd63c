"""``cluster_autoscaler_capacity_buffer_*``: whether the statuses of CapacityBuffers are kept up to date.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026), capacitybuffer/metrics.
"""

from __future__ import annotations

from kubetide.nodes.capacity.buffers.translate import is_managed
from kubetide.nodes.state import State
from kubetide.objects.capacity import CapacityBuffer
from kubetide.units.exposition import Registry
from kubetide.units.time import Instant, parse_rfc3339, seconds


class BufferGauges:
    """The time of the least recent update of a buffer, and the oldest creation of one without any update."""

    def __init__(self, registry: Registry) -> None:
        self._oldest = registry.gauge(
            "cluster_autoscaler_capacity_buffer_oldest_reconciliation_timestamp_seconds",
            "When the buffer that has waited longest was updated, or the oldest new one was created.",
            ("new_buffer",),
        )
        self._looked_at: dict[str, Instant] = {}

    def update(self, state: State, now: Instant) -> None:
        """Note that a tick has brought all buffers up to date."""
        self._looked_at = {one.metadata.uid: now for one in _managed(state)}

    def collect(self, state: State, now: Instant) -> None:
        """Set both values, the time itself where there is no such buffer; none where buffers are left to others."""
        if not state.settings.capacity_buffer_controller_enabled:
            return
        new, known = [now], [now]
        for one in _managed(state):
            looked_at, created = self._looked_at.get(one.metadata.uid), one.metadata.creation_timestamp
            if looked_at is not None:
                known.append(looked_at)
            elif not one.status.conditions and created is not None:
                new.append(parse_rfc3339(created))
        self._oldest.set(min(new) // seconds(1), "true")
        self._oldest.set(min(known) // seconds(1), "false")


def _managed(state: State) -> list[CapacityBuffer]:
    return [one for one in state.capacity.buffers if is_managed(one)]
