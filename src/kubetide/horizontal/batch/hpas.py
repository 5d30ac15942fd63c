"""The HPAs in columns: the parts of specs and scales that a pass over all of them reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.memory import Recommendations
from kubetide.horizontal.metrics.types import Metric, SampleKey, Tolerance
from kubetide.objects.meta import Key
from kubetide.units.time import Duration
from kubetide.units.vectors import BoolVector, Int64Vector


class Segments:
    """The pods of several HPAs end to end, for the metric at one position of their specs.

    Attributes:
        sample_key: What the metrics ask for; the same for all.
        hpas: (H,) keys, ordered; ``positions`` where they stand among all HPAs.
        metrics: (H,) the metrics.
        rows: (M,) rows of the pod table; HPA i has ``rows[starts[i]:starts[i + 1]]``.
        starts: (H + 1,) offsets.
        by_utilization: (H,) whether the target is a percentage; ``target`` is it, or thousandths.
        fill_percent: (H,) as ``Metric.fill_percent``.
    """

    def __init__(
        self,
        sample_key: SampleKey,
        hpas: Sequence[Key],
        positions: Sequence[int],
        metrics: Sequence[Metric],
        table: PodTable,
    ) -> None:
        self.sample_key = sample_key
        self.hpas = tuple(hpas)
        self.positions: Int64Vector = np.array(positions, np.int64)
        self.metrics = tuple(metrics)
        pieces = [table.members_of(hpa) for hpa in hpas]
        self.starts: Int64Vector = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=self.starts[1:])
        self.rows: Int64Vector = np.concatenate(pieces)
        self.by_utilization: BoolVector = np.array([m.average_milli is None for m in metrics], np.bool_)
        targets = [m.utilization if m.average_milli is None else m.average_milli for m in metrics]
        self.target: Int64Vector = np.array([target or 0 for target in targets], np.int64)
        self.fill_percent: Int64Vector = np.array([m.fill_percent for m in metrics], np.int64)

    def is_hpa(self, key: Key) -> BoolVector:
        """Return (H,): whether it is this HPA."""
        return np.fromiter((hpa == key for hpa in self.hpas), np.bool_, len(self.hpas))


class HpaColumns:
    """All HPAs, in order of namespace and name; (H,) each.

    Attributes:
        plain: Whether every metric asks for a resource, its spec could be read and no option is on.
        up_window, down_window: ns; the flag's window downwards where there is no behaviour.
        behaving: Whether the spec has a behaviour.
        readable: Whether the scale was read and has a selector; ``current`` is its ``spec.replicas``.
        row: Row of the recommendations; ``rows`` the same for indexing, a slice where they come in order.
        specs: What the columns were made from.
    """

    def __init__(
        self,
        specs: Sequence[Autoscaler],
        scales: Mapping[Key, ScaleView],
        recommendations: Recommendations,
        downscale_stabilization: Duration,
    ) -> None:
        count = len(specs)

        def column(values: Sequence[int]) -> Int64Vector:
            return np.array(values, np.int64) if count else np.zeros(0, np.int64)

        self.specs = tuple(specs)
        self.position = {spec.key: index for index, spec in enumerate(specs)}
        self.minimum = column([spec.minimum for spec in specs])
        self.maximum = column([spec.maximum for spec in specs])
        self.behaving = column([spec.up is not None for spec in specs]).astype(np.bool_)
        self.up_window = column([spec.up.window if spec.up else 0 for spec in specs])
        self.down_window = column(
            [spec.down.window if spec.down else downscale_stabilization for spec in specs]
        )
        tolerances: list[Tolerance] = [spec.tolerance for spec in specs]
        self.lowest_ratio = np.array([1.0 - tolerance.down for tolerance in tolerances], np.float64)
        self.highest_ratio = np.array([1.0 + tolerance.up for tolerance in tolerances], np.float64)
        self.plain = column(
            [
                not spec.options.any and all(m.resource and not m.problem for m in spec.metrics)
                for spec in specs
            ]
        ).astype(np.bool_)
        self.row = column([recommendations.row(spec.key) for spec in specs])
        in_order = bool((self.row == np.arange(count)).all())
        self.rows: Int64Vector | slice = slice(count) if in_order else self.row
        self.readable: BoolVector = np.zeros(count, np.bool_)
        self.current: Int64Vector = np.zeros(count, np.int64)
        for spec in specs:
            if spec.key in scales:
                self.put_scale(scales[spec.key])

    def put_scale(self, scale: ScaleView) -> None:
        """Store the scale of an HPA's target."""
        position = self.position.get((scale.namespace, scale.name))
        if position is not None:
            self.readable[position] = bool(scale.selector) and not scale.error
            self.current[position] = scale.spec_replicas


def cells_of(specs: Sequence[Autoscaler]) -> list[tuple[int, SampleKey]]:
    """Return the positions of metrics in specs and the samples that they need, ordered: one pass each."""
    return sorted(
        {
            (at, metric.sample_key)
            for spec in specs
            for at, metric in enumerate(spec.metrics)
            if metric.resource
        }
    )
