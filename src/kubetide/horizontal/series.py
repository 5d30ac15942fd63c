"""``horizontal_pod_autoscaler_controller_*``: the series of upstream's HPA controller, and a few more.

Source: kube-controller-manager v1.36; names, labels and buckets are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import nan

from kubetide.explain.records import Record
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.decision import Grounds
from kubetide.horizontal.explain.calculation import short_name
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import YEAR_ONE
from kubetide.horizontal.memory import OptionMemory
from kubetide.horizontal.metrics.types import Proposal
from kubetide.horizontal.options.flapping import flap_report
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry, exponential_buckets
from kubetide.units.time import Duration, Instant, between, to_seconds

PREFIX = "horizontal_pod_autoscaler_controller_"
OURS = "kubetide_horizontal_"
_SECONDS = exponential_buckets(0.001, 2, 15)


class HorizontalSeries:
    """Counts the results of each tick; call ``on_record`` with each record of the loop."""

    def __init__(self, registry: Registry, controller: HorizontalController, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._desired: dict[Key, int] = {}
        self._proposals: dict[Key, tuple[Autoscaler, Callable[[], Grounds]]] = {}
        self._reconciliations = registry.counter(
            f"{PREFIX}reconciliations_total",
            "HPAs that were looked at, by what was done and by the kind of error.",
            ("action", "error"),
        )
        self._durations = registry.histogram(
            f"{PREFIX}reconciliation_duration_seconds",
            "Time of the tick in which an HPA was looked at, once for each HPA.",
            ("action", "error"),
            buckets=_SECONDS,
        )
        self._computations = registry.counter(
            f"{PREFIX}metric_computation_total",
            "Metrics of HPAs that were worked out.",
            ("action", "error", "metric_type"),
        )
        self._number = registry.gauge(
            f"{PREFIX}num_horizontal_pod_autoscalers", "HPAs that the controller takes care of."
        )
        self._desired_replicas = registry.gauge(
            f"{PREFIX}desired_replicas",
            "Replicas that an HPA last asked for.",
            ("hpa_name", "namespace"),
        )
        self._ticks = registry.histogram(
            f"{OURS}tick_duration_seconds",
            "Time of a tick, from its first question to its record.",
            buckets=_SECONDS,
        )
        self._newest = registry.gauge(
            f"{OURS}newest_sample_age_seconds",
            "Age of the newest resource sample of the last tick, as of now; NaN when there was none.",
        )
        self._failures = registry.counter(f"{OURS}tick_failures_total", "Ticks that ended with an error.")
        names = ("hpa_name", "namespace")
        self._proposed = registry.gauge(
            f"{OURS}proposed_replicas",
            "Replicas that a metric of an HPA last proposed, before windows, policies and bounds.",
            ("hpa_name", "metric", "namespace"),
        )
        self._changes = registry.gauge(
            f"{OURS}recent_changes", "Changes of an HPA that reports flapping, within an hour.", names
        )
        self._reversals = registry.gauge(
            f"{OURS}recent_reversals", "Changes among them that went against the one before.", names
        )
        self._onsets = registry.gauge(
            "kubetide_forecast_onsets",
            "Forecast onsets that came true (hit) and that did not (miss), since the HPA is known.",
            (*names, "outcome"),
        )
        self._held = registry.gauge(
            "kubetide_forecast_pod_minutes",
            "Pod-minutes held for forecasts beyond what the load asked for, since the HPA is known.",
            names,
        )
        self._forecast = registry.gauge(
            "kubetide_forecast_replicas", "Replicas that are held now for what is forecast.", names
        )
        registry.before_scrape(self._collect)

    def on_record(self, record: Record) -> None:
        """Count the tick that the record ends."""
        del record  # the controller shows more than is recorded
        controller = self._controller
        took = to_seconds(Duration(self._clock.monotonic() - controller.health.began))
        self._ticks.observe(took)
        ends: Counter[tuple[str, str]] = Counter()
        computed: Counter[tuple[str, str, str]] = Counter()
        endings = controller.endings
        for settlement in controller.result.settlements:
            key = settlement.verdict.key
            if settlement.verdict.stage == "waiting":
                continue
            ending = endings.get(key)
            error = settlement.error_label if ending is None else ending.error_label
            ends[settlement.action, error] += 1
            for one in settlement.verdict.computations:
                computed[one.action, one.error, one.metric_type] += 1
            if settlement.desired is not None:
                self._desired[key] = settlement.desired
            grounds = settlement.verdict.grounds
            if grounds is None:
                self._proposals.pop(key, None)
            else:
                self._proposals[key] = controller.state.specs[key], grounds
        for labels, times in ends.items():
            self._reconciliations.add(times, *labels)
            self._durations.observe(took, *labels, times=times)
        for values, times in computed.items():
            self._computations.add(times, *values)

    def _collect(self) -> None:
        state = self._controller.state
        self._number.set(len(state.views))
        # Upstream keeps the series of HPAs that are gone; here they go with them.
        self._desired = {key: desired for key, desired in self._desired.items() if key in state.views}
        self._desired_replicas.clear()
        for (namespace, name), desired in self._desired.items():
            self._desired_replicas.set(desired, name, namespace)
        self._collect_proposals()
        self._collect_flapping()
        self._collect_forecasts()
        self._failures.set(self._controller.health.failures)
        samples = state.samples
        newest = int(samples.times.max(where=samples.seen, initial=YEAR_ONE))
        none = newest == YEAR_ONE
        self._newest.set(nan if none else to_seconds(between(Instant(newest), self._clock.now())))

    def _collect_proposals(self) -> None:
        known = self._controller.state.views
        self._proposals = {key: found for key, found in self._proposals.items() if key in known}
        self._proposed.clear()
        for (namespace, name), (spec, grounds) in self._proposals.items():
            for metric, proposal in zip(spec.metrics, grounds()[0], strict=True):
                if isinstance(proposal, Proposal):
                    self._proposed.set(proposal.replicas, name, short_name(metric), namespace)

    def _collect_flapping(self) -> None:
        state, now = self._controller.state, self._clock.now()
        self._changes.clear()
        self._reversals.clear()
        for key, spec in state.specs.items():
            if spec.options.flap_report:
                namespace, name = key
                report = flap_report(state.options.get(key, OptionMemory()).changes, now)
                self._changes.set(report.changes, name, namespace)
                self._reversals.set(report.reversals, name, namespace)

    def _collect_forecasts(self) -> None:
        forecasts, now = self._controller.state.forecasts, self._clock.now()
        for gauge in (self._onsets, self._held, self._forecast):
            gauge.clear()
        for key in forecasts.keys():  # noqa: SIM118  they are no mapping
            namespace, name = key
            score = forecasts.score(key)
            self._onsets.set(score.hits, name, namespace, "hit")
            self._onsets.set(score.misses, name, namespace, "miss")
            self._held.set(score.pod_minutes, name, namespace)
            self._forecast.set(forecasts.ahead(key, now).pods, name, namespace)


def show_sources(registry: Registry, controller: HorizontalController) -> None:
    """Add the series of the guards around the metric sources."""
    bugs = registry.counter(
        "kubetide_metric_source_failures_total",
        "Questions to a metric source that ended in an error which such a source must not raise.",
        ("source",),
    )
    left = registry.gauge(
        "kubetide_metric_source_left_alone",
        "Whether the source is not asked for a while, as it did not answer several times: 1 or 0.",
        ("source",),
    )

    def collect() -> None:
        for source in controller.sources:
            bugs.set(source.failures, source.name)
            left.set(source.is_left_alone, source.name)

    registry.before_scrape(collect)
