"""``vpa_recommender_*``: the series of upstream's recommender, and every recommendation.

Source: VPA 1.8.1, pkg/utils/metrics/recommender; names, labels and buckets are its own.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from kubetide.explain.records import Record
from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import Condition, Key
from kubetide.objects.vpa import ContainerRecommendation, VpaStatus
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Duration, to_seconds
from kubetide.vertical.recommender.controller import RecommenderController
from kubetide.vertical.recommender.series.quality import QualitySeries
from kubetide.vertical.recommender.targets.conditions import PROVIDED, UNSUPPORTED, is_true
from kubetide.vertical.series import EXECUTION_SECONDS

PREFIX: Final = "vpa_recommender_"
OURS: Final = "kubetide_recommender_"

MOST_CONTAINERS: Final = 2500
"""So many recommendations are shown, eight series each; more would make a scrape of tens of megabytes."""

_MODES: Final = ("Off", "Initial", "Recreate", "Auto", "InPlaceOrRecreate", "InPlace")
_API_VERSIONS: Final = ("v1beta1", "v1beta2", "v1")
# The version that objects are read in, whichever they were written in.
_API: Final = "v1"
_DEFAULT_MODE: Final = "Recreate"
_CLIENT: Final = "default-metrics-client"
_FIRST_SECONDS: Final = (
    *(1.0, 2.0, 5.0, 7.5, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0),
    *(600.0, 900.0, 1800.0),
)
_TRUTHS: Final = ("false", "true")
_KINDS: Final = tuple(itertools.product(_API_VERSIONS, _TRUTHS, _TRUTHS, _TRUTHS, _MODES))


class RecommenderSeries:
    """Counts the results of each pass; call ``on_record`` with each record of the loop."""

    def __init__(self, registry: Registry, controller: RecommenderController, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._objects = registry.gauge(
            f"{PREFIX}vpa_objects_count",
            "VPA objects that the recommender serves.",
            ("api", "has_recommendation", "matches_pods", "unsupported_config", "update_mode"),
        )
        self._first = registry.histogram(
            f"{PREFIX}recommendation_latency_seconds",
            "Time from the creation of a VPA object to its first recommendation.",
            buckets=_FIRST_SECONDS,
        )
        self._steps = registry.histogram(
            f"{PREFIX}execution_latency_seconds",
            "Time of the parts of a pass.",
            ("step",),
            buckets=EXECUTION_SECONDS,
        )
        self._aggregates = registry.gauge(
            f"{PREFIX}aggregate_container_states_count", "Histograms of containers that are held."
        )
        self._responses = registry.counter(
            f"{PREFIX}metric_server_responses",
            "Answers of the source of usage.",
            ("client_name", "is_error"),
        )
        self._recommended = registry.gauge(
            f"{OURS}recommendation",
            "Recommendations of the last pass, also those that are not written, in cores and bytes.",
            ("bound", "container", "namespace", "resource", "vpa"),
        )
        self._left_out = registry.gauge(
            f"{OURS}recommendations_left_out",
            "Containers whose recommendation is not shown, as there are too many.",
        )
        self._lost_ooms = registry.counter(
            f"{OURS}lost_ooms_total", "OOMs that were passed over, as there were too many between two passes."
        )
        self._quality = QualitySeries(registry)
        registry.before_scrape(self._collect)

    def on_record(self, record: Record) -> None:
        """Count the pass that the record ends."""
        del record  # the controller shows more than is recorded
        controller = self._controller
        for step, took in controller.steps.took.items():
            self._steps.observe(to_seconds(took), step)
        self._steps.observe(to_seconds(controller.steps.total()), "total")
        self._responses.add(1, _CLIENT, _text(bool(controller.metrics_error)))
        now = self._clock.now()
        for created in controller.first_recommended:
            self._first.observe(to_seconds(Duration(max(now - created, 0))))
        self._aggregates.set(controller.result.aggregates)
        self._count_objects()
        self._quality.count(controller)

    def _count_objects(self) -> None:
        state, decided = self._controller.state, self._controller.decided
        found: Counter[tuple[str, ...]] = Counter()
        for key, vpa in state.vpas.items():
            made = decided.get(key)
            conditions = vpa.stored.conditions if made is None else _decoder.decode(made).conditions or ()
            found[
                _API,
                _text(is_true(conditions, PROVIDED)),
                _text(any(state.groups[group].pods for group in vpa.groups)),
                _text(is_true(conditions, UNSUPPORTED)),
                vpa.view.mode or _DEFAULT_MODE,
            ] += 1
        self._objects.clear()
        for kind in {*_KINDS, *found}:
            self._objects.set(found[kind], *kind)

    def _collect(self) -> None:
        self._lost_ooms.set(self._controller.lost_ooms)
        self._recommended.clear()
        left_out = 0
        for number, (key, one) in enumerate(self._recommendations()):
            if number < MOST_CONTAINERS:
                self._show(key, one)
            else:
                left_out += 1
        self._left_out.set(left_out)

    def _recommendations(self) -> Iterator[tuple[Key, ContainerRecommendation]]:
        """Yield what the last pass came to; where it decided no write, that is what the status says."""
        vpas, decided = self._controller.state.vpas, self._controller.decided
        for key in sorted(vpas):
            made = decided.get(key)
            status = vpas[key].stored.read() if made is None else msgspec.json.decode(made, type=VpaStatus)
            recommendation = status.recommendation
            for one in (recommendation.container_recommendations if recommendation else None) or ():
                yield key, one

    def _show(self, key: Key, one: ContainerRecommendation) -> None:
        bounds = {
            "target": one.target,
            "lower": one.lower_bound,
            "upper": one.upper_bound,
            "uncapped_target": one.uncapped_target,
        }
        for bound, amounts in bounds.items():
            for resource, text in (amounts or {}).items():
                try:
                    value = Quantity.parse(str(text)).milli_value() / 1000
                except QuantityError:
                    continue
                self._recommended.set(value, bound, one.container_name, key[0], resource, key[1])


class _Conditions(ApiStruct):
    """The part of a status that says what kind of VPA object it is."""

    conditions: tuple[Condition, ...] | None = None


_decoder = msgspec.json.Decoder(_Conditions)


def _text(truth: bool) -> str:
    return _TRUTHS[truth]
