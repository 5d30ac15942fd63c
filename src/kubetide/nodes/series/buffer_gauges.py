"""``cluster_autoscaler_capacity_buffer_*``: whether the statuses of CapacityBuffers are kept up to date.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026), capacitybuffer/metrics.
"""

from __future__ import annotations

from collections.abc import Collection

from kubetide.nodes.capacity.buffers.translate import is_managed
from kubetide.nodes.facts.objects import KnownKey
from kubetide.nodes.state import State
from kubetide.objects.capacity import CapacityBuffer
from kubetide.objects.kinds import CAPACITY_BUFFERS
from kubetide.units.exposition import Registry
from kubetide.units.time import Instant, instant_of, seconds


class BufferGauges:
    """The time of the least recent update of a buffer, and the oldest creation of one without any update."""

    def __init__(self, registry: Registry) -> None:
        self._oldest = registry.gauge(
            "cluster_autoscaler_capacity_buffer_oldest_reconciliation_timestamp_seconds",
            "When the buffer that has waited longest was updated, or the oldest new one was created.",
            ("new_buffer",),
        )
        self._looked_at: dict[str, Instant] = {}
        self._before: dict[str, Instant] = {}
        """When each was updated before a tick looked at it last."""

    def update(self, state: State, now: Instant, unwritten: Collection[KnownKey] = ()) -> None:
        """Note that a tick has brought all buffers up to date; of those ``unwritten``, the ticks before have not."""
        buffers = _managed(state)
        updated = {one.metadata.uid: self._updated(one, unwritten) for one in buffers}
        self._before = {uid: at for uid, at in updated.items() if at is not None}
        self._looked_at = {one.metadata.uid: now for one in buffers}

    def collect(self, state: State, now: Instant, unwritten: Collection[KnownKey] = ()) -> None:
        """Set both values, the time itself where there is no such buffer; none where buffers are left to others.

        As upstream, a buffer whose status cannot be written is not up to date.
        """
        if not state.settings.capacity_buffer_controller_enabled:
            return
        new, known = [now], [now]
        for one in _managed(state):
            updated, created = self._updated(one, unwritten), instant_of(one.metadata.creation_timestamp)
            if updated is not None:
                known.append(updated)
            elif created is not None and (_key(one) in unwritten or not one.status.conditions):
                new.append(created)
        self._oldest.set(min(new) // seconds(1), "true")
        self._oldest.set(min(known) // seconds(1), "false")

    def _updated(self, buffer: CapacityBuffer, unwritten: Collection[KnownKey]) -> Instant | None:
        times = self._before if _key(buffer) in unwritten else self._looked_at
        return times.get(buffer.metadata.uid)


def _key(buffer: CapacityBuffer) -> KnownKey:
    return CAPACITY_BUFFERS.plural, buffer.metadata.namespace, buffer.metadata.name


def _managed(state: State) -> list[CapacityBuffer]:
    return [one for one in state.capacity.buffers if is_managed(one)]
