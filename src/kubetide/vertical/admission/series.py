"""``vpa_admission_controller_*``: the series of upstream's admission controller.

Source: VPA 1.8.1, pkg/utils/metrics/admission; names, labels and buckets are its own.
"""

from __future__ import annotations

from typing import Final

from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, to_seconds
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.decide import Answer
from kubetide.vertical.series import EXECUTION_SECONDS

PREFIX: Final = "vpa_admission_controller_"
_SECONDS: Final = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0),
)


class AdmissionSeries:
    """Counts every answered review."""

    def __init__(self, registry: Registry, controller: AdmissionController) -> None:
        self._handler = controller.handler
        self._pods = registry.counter(
            f"{PREFIX}admission_pods_total", "Pods that were reviewed.", ("applied",)
        )
        self._latency = registry.histogram(
            f"{PREFIX}admission_latency_seconds",
            "Time of a review.",
            ("resource", "status"),
            buckets=_SECONDS,
        )
        self._steps = registry.histogram(
            f"{PREFIX}execution_latency_seconds",
            "Time of the parts of a review.",
            ("step",),
            buckets=EXECUTION_SECONDS,
        )
        self._bugs = registry.counter(
            "kubetide_admission_bugs_total",
            "Reviews that were allowed because answering them failed in a way that nobody foresaw.",
        )
        self._handler.observer = self._observe
        registry.before_scrape(lambda: self._bugs.set(self._handler.bugs))

    def _observe(self, answer: Answer, read: Duration, admit: Duration) -> None:
        if answer.resource == "Pod":
            self._pods.add(1, "true" if answer.status == "applied" else "false")
        total = to_seconds(Duration(read + admit))
        self._latency.observe(total, answer.resource, answer.status)
        self._steps.observe(to_seconds(read), "read_request")
        self._steps.observe(to_seconds(admit), "admit")
        self._steps.observe(total, "total")
