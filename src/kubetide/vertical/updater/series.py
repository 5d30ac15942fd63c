"""``vpa_updater_*``: the series of upstream's updater.

Source: VPA 1.8.1, pkg/utils/metrics/updater; names, labels and buckets are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from kubetide.explain.records import Record
from kubetide.objects.vpa import AUTO, RECREATE
from kubetide.units.exposition import Numbers, Registry
from kubetide.units.time import to_seconds
from kubetide.vertical.series import EXECUTION_SECONDS, LARGEST_SIZE, size_label
from kubetide.vertical.updater.controller import UpdaterController
from kubetide.vertical.updater.decision import Result, VpaCounts

PREFIX: Final = "vpa_updater_"

_BY_MODE: Final = ("update_mode", "vpa_size_log2")
_BY_SIZE: Final = ("vpa_size_log2",)
_EVICTING: Final = frozenset({RECREATE, AUTO})
_OF_VPA: Final = ("vpa_name", "vpa_namespace", "vpa_size_log2")

_Value = Callable[[VpaCounts], int]
_Shown = Callable[[VpaCounts], int | None]
"""None: the VPA adds no series, not even one at 0."""


class UpdaterSeries:
    """Counts what came of each loop; ``on_record`` is to be called with each record of the loop."""

    def __init__(self, registry: Registry, controller: UpdaterController) -> None:
        self._controller = controller
        counter = registry.counter
        self._by_mode = _gauges_by_mode(registry)
        self._by_size = _gauges_by_size(registry)
        self._evicted = counter(f"{PREFIX}evicted_pods_total", "Evicted pods.", ("update_mode", *_OF_VPA))
        self._failed_evictions = counter(
            f"{PREFIX}failed_eviction_attempts_total",
            "Evictions that were refused, or for which the rate limit left no time.",
            ("reason", "update_mode", *_OF_VPA),
        )
        self._resized = counter(f"{PREFIX}in_place_updated_pods_total", "Pods resized in place.", _OF_VPA)
        self._skipped = counter(
            f"{PREFIX}in_place_infeasible_skip_pods_total",
            "Pods left alone as the same resize was infeasible before.",
            _OF_VPA,
        )
        self._failed_resizes = counter(
            f"{PREFIX}failed_in_place_update_attempts_total",
            "Resizes that were refused, infeasible, or for which the rate limit left no time.",
            ("reason", *_OF_VPA),
        )
        self._invalid = counter(
            f"{PREFIX}admission_controller_status_invalid_total",
            "Loops that did nothing for want of the admission controller's lease.",
            ("reason",),
        )
        self._steps = registry.histogram(
            f"{PREFIX}execution_latency_seconds",
            "Time of the parts of a loop.",
            ("step",),
            buckets=EXECUTION_SECONDS,
        )

    def on_record(self, record: Record) -> None:
        """Count the loop that the record ends; one that is not its last ends nothing."""
        del record  # the controller shows more than is recorded
        controller = self._controller
        ended = controller.ended
        if ended is None:
            return
        for (namespace, name), counts in ended.counts.items():
            self._count(namespace, name, counts)
        if controller.ends_boosts:
            return
        if ended.skipped in {"error", "invalid"}:
            self._invalid.add(1, ended.skipped)
        if not ended.skipped:
            self._show(ended)
        for step, took in controller.steps.took.items():
            self._steps.observe(to_seconds(took), step)
        self._steps.observe(to_seconds(controller.steps.total()), "total")

    def _count(self, namespace: str, name: str, counts: VpaCounts) -> None:
        vpa = name, namespace, size_label(counts.controlled)
        # These two are there from the first loop on, at 0.
        self._evicted.add(counts.evicted, counts.mode, *vpa)
        self._resized.add(counts.in_place_updated, *vpa)
        if counts.infeasible_skips:
            self._skipped.add(counts.infeasible_skips, *vpa)
        for reason, times in Counter(counts.failed_evictions).items():
            self._failed_evictions.add(times, reason, counts.mode, *vpa)
        for reason, times in Counter(counts.failed_resizes).items():
            self._failed_resizes.add(times, reason, *vpa)

    def _show(self, ended: Result) -> None:
        for gauge, value in self._by_mode:
            gauge.clear()
            totals: Counter[tuple[str, str]] = Counter()
            for one in ended.counts.values():
                shown = value(one)
                if shown is not None:
                    totals[one.mode, size_label(one.controlled)] += shown
            for labels, total in totals.items():
                gauge.set(total, *labels)
        for gauge, value in self._by_size:
            by_size = Counter({str(size): 0 for size in range(LARGEST_SIZE + 1)})
            for one in ended.counts.values():
                by_size[size_label(one.controlled)] += value(one)
            for size, total in by_size.items():
                gauge.set(total, size)


def _gauges_by_mode(registry: Registry) -> tuple[tuple[Numbers, _Shown], ...]:
    """Return the gauges of a VPA by its update mode and size, each with what it counts."""
    gauge = registry.gauge
    return (
        (
            gauge(f"{PREFIX}controlled_pods_total", "Pods that VPA objects select.", _BY_MODE),
            lambda one: one.controlled,
        ),
        (
            gauge(f"{PREFIX}evictable_pods_total", "Pods to be evicted.", _BY_MODE),
            lambda one: one.evictable if one.mode in _EVICTING else None,
        ),
        (
            gauge(
                f"{PREFIX}vpas_with_evictable_pods_total",
                "VPA objects with a pod to be evicted.",
                _BY_MODE,
            ),
            lambda one: 1 if one.evictable else None,
        ),
        (
            gauge(f"{PREFIX}vpas_with_evicted_pods_total", "VPA objects with an evicted pod.", _BY_MODE),
            lambda one: 1 if one.evicted else None,
        ),
    )


def _gauges_by_size(registry: Registry) -> tuple[tuple[Numbers, _Value], ...]:
    """Return the gauges of a VPA by its size, each with what it counts."""
    gauge = registry.gauge
    return (
        (
            gauge(f"{PREFIX}in_place_updatable_pods_total", "Pods to be resized in place.", _BY_SIZE),
            lambda one: one.in_place_updatable,
        ),
        (
            gauge(
                f"{PREFIX}vpas_with_in_place_updatable_pods_total",
                "VPA objects with a pod to be resized in place.",
                _BY_SIZE,
            ),
            lambda one: int(one.in_place_updatable > 0),
        ),
        (
            gauge(
                f"{PREFIX}vpas_with_in_place_updated_pods_total",
                "VPA objects with a pod that was resized in place.",
                _BY_SIZE,
            ),
            lambda one: int(one.in_place_updated > 0),
        ),
    )
