"""``vpa_quality_*``: the distance of usage from recommendations, and the size of their changes.

A sample is held against the uncapped target that the pass before it came to. All samples of a pass are counted
together, in columns. Source: VPA 1.8.1, pkg/utils/metrics/quality; names, labels and buckets are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import Key
from kubetide.objects.vpa import CONTAINER_OFF
from kubetide.units.exposition import Histogram, Registry, exponential_buckets
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.vectors import Float64Vector, Int64Vector
from kubetide.vertical.recommender.controller import RecommenderController
from kubetide.vertical.recommender.facts.members import Vpa
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.usage.histograms import NEVER
from kubetide.vertical.resources.policies import container_policy
from kubetide.vertical.series import size_label

PREFIX: Final = "vpa_quality_"

_CPU_BUCKETS: Final = exponential_buckets(0.01, 2.0, 17)
_MEMORY_BUCKETS: Final = exponential_buckets(1e6, 2.0, 17)
_RISES: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
_RELATIVE_BUCKETS: Final = (
    *(-one for one in reversed(_RISES)),
    0.0,
    *_RISES,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
)
_RESOURCES: Final = ("cpu", "memory")
_UNOBSERVED: Final = -1
_TRUTHS: Final = ("false", "true")


_Cells = Sequence[tuple[str, tuple[int, ...]]]
"""Containers with the rows of their aggregates."""


class _Observed(NamedTuple):
    """What is known of a VPA.

    Attributes:
        vpa: The entry itself: one of the same name with another selector is another VPA.
        cells, mode, rows: Its containers when they were last looked at, its update mode, and the aggregates of pods.
        status, counted: Status and containers of the last pass; empty before the first.
        counts: By resource, how many aggregates have a recommendation by that status.
    """

    vpa: Vpa
    cells: object
    mode: str
    rows: tuple[int, ...]
    status: bytes = b""
    counted: object = None
    counts: tuple[tuple[str, int], ...] = ()


class QualitySeries:
    """Counts the samples and the recommendations of each pass."""

    def __init__(self, registry: Registry) -> None:
        def histogram(name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
            return registry.histogram(f"{PREFIX}{name}", text, labels, buckets=buckets)

        usage = ("is_oom", "resource", "update_mode")
        missing = ("recommendation_missing", "update_mode")
        self._relative = histogram(
            "usage_recommendation_relative_diffs",
            "Usage less its recommendation, as a share of the recommendation.",
            usage,
            _RELATIVE_BUCKETS,
        )
        self._missing = registry.counter(
            f"{PREFIX}usage_sample_missing_recommendation_count",
            "Samples of usage of containers that should have a recommendation and have none.",
            usage,
        )
        text = "Difference of usage and a recommendation that is {}."
        greater, other = text.format("greater"), text.format("not greater; without one all of the usage")
        oom = ("is_oom", *missing)
        self._over = {
            "cpu": histogram("cpu_recommendation_over_usage_diffs_cores", greater, missing, _CPU_BUCKETS),
            "memory": histogram("mem_recommendation_over_usage_diffs_bytes", greater, oom, _MEMORY_BUCKETS),
        }
        self._under = {
            "cpu": histogram(
                "cpu_recommendation_lower_equal_usage_diffs_cores", other, missing, _CPU_BUCKETS
            ),
            "memory": histogram(
                "mem_recommendation_lower_equal_usage_diffs_bytes", other, oom, _MEMORY_BUCKETS
            ),
        }
        help_text = "Recommendation of a container, once a sample of its usage."
        self._recommended = {
            "cpu": histogram("cpu_recommendations_cores", help_text, ("update_mode",), _CPU_BUCKETS),
            "memory": histogram(
                "mem_recommendations_bytes", help_text, ("is_oom", "update_mode"), _MEMORY_BUCKETS
            ),
        }
        self._changes = histogram(
            "relative_recommendation_changes",
            "Change of a recommendation from one pass to the next, as a share of the one before.",
            ("resource", "update_mode", "vpa_size_log2"),
            _RELATIVE_BUCKETS,
        )
        self._observed: dict[Key, _Observed] = {}
        self._modes: list[str] = []
        # By aggregate: when it was made, the number of the mode of its VPA, and what was recommended last, 0 for nothing.
        self._made = np.empty(0, np.int64)
        self._mode = np.empty(0, np.int64)
        self._amounts = {resource: np.empty(0) for resource in _RESOURCES}
        # By container: when its last sample was taken.
        self._seen = {resource: np.empty(0, np.int64) for resource in _RESOURCES}

    def count(self, controller: RecommenderController) -> None:
        """Count the pass that has just ended."""
        self._link(controller.state)
        self._count_samples(controller)
        self._take_over(controller)

    # ── samples ──

    def _count_samples(self, controller: RecommenderController) -> None:
        state, samples = controller.state, controller.samples
        if samples is not None:
            rows = state.sample_rows.of(state.pods, samples)
            known = rows >= 0
            at = np.repeat(samples.times, np.diff(samples.first))[known]
            for resource, amounts in (("cpu", samples.cpu), ("memory", samples.memory)):
                self._count_usage(state, resource, rows[known], amounts[known], at)
        for row, needed in state.containers.oom_samples:
            self._observe(state, "memory", np.array([row]), np.array([float(needed)]), oom=True)

    def _count_usage(
        self, state: State, resource: str, rows: Int64Vector, amounts: Int64Vector, at: Int64Vector
    ) -> None:
        """Count the samples that the recommender took: CPU later than the last one, memory not earlier."""
        size = len(state.containers.aggregate)
        seen = self._seen[resource]
        if len(seen) < size:
            seen = np.concatenate([seen, np.full(size - len(seen), NEVER, np.int64)])
            self._seen[resource] = seen
        good = (amounts >= 0) & (at > seen[rows] if resource == "cpu" else at >= seen[rows])
        seen[rows[good]] = at[good]
        usage = amounts[good].astype(np.float64) / (1000.0 if resource == "cpu" else 1.0)
        self._observe(state, resource, rows[good], usage, oom=False)

    def _observe(
        self, state: State, resource: str, rows: Int64Vector, usage: Float64Vector, *, oom: bool
    ) -> None:
        aggregate = state.containers.aggregate[rows]
        served = (aggregate >= 0) & (aggregate < len(self._mode))
        aggregate, usage = aggregate[served], usage[served]
        modes, recommended = self._mode[aggregate], self._amounts[resource][aggregate]
        for number, mode in enumerate(self._modes):
            here = modes == number
            if here.any():
                self._observe_mode(resource, mode, usage[here], recommended[here], _TRUTHS[oom])

    def _observe_mode(
        self, resource: str, mode: str, usage: Float64Vector, recommended: Float64Vector, oom: str
    ) -> None:
        labels = () if resource == "cpu" else (oom,)
        some = recommended > 0
        lacking = int(np.count_nonzero(~some))
        if lacking:
            self._missing.add(lacking, oom, resource, mode)
            _observe(self._under[resource], usage[~some], *labels, "true", mode)
        usage, recommended = usage[some], recommended[some]
        if len(usage):
            over = recommended > usage
            diffs = np.abs(usage - recommended)
            _observe(self._recommended[resource], recommended, *labels, mode)
            _observe(self._over[resource], diffs[over], *labels, "false", mode)
            _observe(self._under[resource], diffs[~over], *labels, "false", mode)
            relative = (usage - recommended) / recommended
            _observe(self._relative, relative, oom, resource, mode)

    # ── recommendations ──

    def _link(self, state: State) -> None:
        """Note which aggregates are whose by now; where several VPAs share one, the last by name counts."""
        self._grow(len(state.aggregates.count))
        for key, old in list(self._observed.items()):
            if state.vpas.get(key) is not old.vpa:
                rows = list(self._observed.pop(key).rows)
                self._mode[rows] = _UNOBSERVED
                for known in self._amounts.values():
                    known[rows] = 0.0
        changed = []
        for key, vpa in state.vpas.items():
            before = self._observed.get(key)
            if (
                before is None
                or before.cells is not state.cells_of(vpa)
                or before.mode != (vpa.view.mode or "")
            ):
                changed.append(vpa)
                if before is not None:
                    self._mode[list(before.rows)] = _UNOBSERVED
        for vpa in sorted(changed, key=lambda vpa: vpa.key):
            self._note(state, vpa)

    def _grow(self, size: int) -> None:
        more = size - len(self._mode)
        if more > 0:
            never = np.full(more, NEVER, np.int64)
            self._made = np.concatenate([self._made, never])
            self._mode = np.concatenate([self._mode, np.full(more, _UNOBSERVED, np.int64)])
            for resource, known in self._amounts.items():
                self._amounts[resource] = np.concatenate([known, np.zeros(more)])

    def _note(self, state: State, vpa: Vpa) -> None:
        """Note the aggregates of a VPA; samples of containers that it leaves out are not counted."""
        mode = vpa.view.mode or ""
        if mode not in self._modes:
            self._modes.append(mode)
        number, cells, rows = self._modes.index(mode), state.cells_of(vpa), list[int]()
        for container, aggregates in cells:
            live = _live(vpa, aggregates)
            rows += live
            policy = container_policy(vpa.view.policy, container)
            if policy is None or policy.mode != CONTAINER_OFF:
                self._mode[live] = number
        # A row may be that of another aggregate by now: nothing was recommended for it yet.
        new = [row for row in rows if self._made[row] != state.aggregates.created[row]]
        self._made[new] = state.aggregates.created[new]
        for known in self._amounts.values():
            known[new] = 0.0
        before = self._observed.get(vpa.key)
        self._observed[vpa.key] = (
            _Observed(vpa, cells, mode, tuple(rows))
            if before is None
            else before._replace(cells=cells, mode=mode, rows=tuple(rows))
        )

    def _take_over(self, controller: RecommenderController) -> None:
        """Compare what is recommended by now with what was before, and the next samples with it."""
        state = controller.state
        made = {(one.namespace, one.name): bytes(one.status) for one in controller.commands.statuses}
        same: Counter[tuple[str, str, str]] = Counter()
        for key in sorted(state.vpas):
            vpa, old = state.vpas[key], self._observed[key]
            status, size = made.get(key, vpa.stored.encoded), size_label(state.pod_count(vpa))
            cells = state.cells_of(vpa)
            if status != old.status or old.counted is not cells:
                counts = self._compare(vpa, cells, status, old.mode, size)
                self._observed[key] = old._replace(status=status, counted=cells, counts=counts)
                continue
            for resource, count in old.counts:
                same[resource, old.mode, size] += count
        for labels, times in same.items():
            self._changes.observe(0.0, *labels, times=times)

    def _compare(
        self, vpa: Vpa, cells: _Cells, status: bytes, mode: str, size: str
    ) -> tuple[tuple[str, int], ...]:
        """Count the changes of each aggregate's recommendation; return how many have one now, by resource."""
        recommended = _decoder.decode(status).recommendation
        containers = (recommended and recommended.container_recommendations) or ()
        amounts = {one.container_name: one.uncapped_target or {} for one in containers}
        counts: Counter[str] = Counter()
        for container, aggregates in cells:
            if container not in amounts:
                continue
            live = _live(vpa, aggregates)
            for resource, known in self._amounts.items():
                new = 0.0
                if resource in amounts[container]:
                    new = _amount(resource, str(amounts[container][resource]))
                    for before in known[live].tolist():
                        if before > 0:
                            self._changes.observe(new / before - 1.0, resource, mode, size)
                known[live] = new
                counts[resource] += len(live) if new > 0 else 0
        return tuple(counts.items())


class _Container(ApiStruct):
    container_name: str = ""
    uncapped_target: Quantities | None = None


class _Recommendation(ApiStruct):
    container_recommendations: tuple[_Container, ...] | None = None


class _Status(ApiStruct):
    recommendation: _Recommendation | None = None


_decoder = msgspec.json.Decoder(_Status)


def _live(vpa: Vpa, rows: Sequence[int]) -> list[int]:
    """Return the aggregates of pods, without those that checkpoints were loaded into."""
    loaded = set(vpa.loaded.values())
    return [row for row in rows if row not in loaded]


def _observe(histogram: Histogram, values: Float64Vector, *labels: str) -> None:
    if len(values):
        buckets = np.searchsorted(np.array(histogram.bounds), values, side="left")
        counts = np.bincount(buckets, minlength=len(histogram.bounds))
        histogram.add(counts.tolist(), float(values.sum()), *labels)


@lru_cache(maxsize=1 << 12)
def _amount(resource: str, text: str) -> float:
    try:
        parsed = Quantity.parse(text)
    except QuantityError:
        return 0.0
    return parsed.milli_value() / 1000.0 if resource == "cpu" else float(parsed.value())
