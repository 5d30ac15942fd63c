"""Results of a pass in columns: tallies, proposals, and the inputs of verdicts, by HPA.

A state keeps those of the last pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kubetide.horizontal.batch.hpas import Segments
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.metrics.resource import present, status_of
from kubetide.horizontal.metrics.types import Arithmetic, Known, MetricFailure, Proposal, Tally
from kubetide.objects.hpa import MetricStatus
from kubetide.units.vectors import BoolVector, Int64Vector


class TallyColumns(msgspec.Struct, frozen=True, eq=False):
    """The tallies of many HPAs: (H,) int64 each, with the fields of ``Tally``.

    Attributes:
        by_utilization: (H,) whether requests play a part.
        odd: (H,) whether an HPA must be looked at pod by pod: one of its pods has no request, or
            it has samples of unknown pods.
    """

    pods: Int64Vector
    ready: Int64Vector
    unready: Int64Vector
    missing: Int64Vector
    answered: Int64Vector
    usage: Int64Vector
    requests: Int64Vector
    missing_requests: Int64Vector
    unready_requests: Int64Vector
    fill: Int64Vector
    by_utilization: BoolVector
    odd: BoolVector

    def figures(self) -> Int64Vector:
        """Return (figures, H): all input of proposals."""
        sums = (self.usage, self.requests, self.missing_requests, self.unready_requests, self.fill)
        return np.stack([self.pods, self.ready, self.unready, self.missing, self.answered, *sums])

    def at(self, index: int) -> Tally:
        """Return the tally of one HPA."""
        ready, usage = int(self.ready[index]), int(self.usage[index])
        unready, missing = int(self.unready[index]), int(self.missing[index])
        pods = int(self.pods[index])
        found = Tally(
            pods=pods,
            ready=ready,
            unready=unready,
            missing=missing,
            ignored=pods - ready - unready - missing,
            answered=int(self.answered[index]),
            samples=ready,
            usage=usage,
            matched=ready,
            matched_usage=usage,
        )
        if not self.by_utilization[index]:
            return found
        return msgspec.structs.replace(
            found,
            requests=int(self.requests[index]),
            missing_requests=int(self.missing_requests[index]),
            unready_requests=int(self.unready_requests[index]),
            fill=int(self.fill[index]),
        )


class Cell(msgspec.Struct, frozen=True, eq=False):
    """One pass: the metrics at one position of the specs that ask for one resource.

    Attributes:
        index: (all HPAs,) where each HPA stands in this cell, -1 for those that are not in it.
        current: (H,) ``figures`` (figures, H): all that the proposals are made from, but for the specs.
        replicas: (H,) proposals, -1 where there is none; ``proposals`` the same as a list.
        average, percent: By HPA, for the status; ``percent`` means nothing for average targets.
        walked: Proposals of HPAs with pods to be filled in, by index.
    """

    segments: Segments
    tallies: TallyColumns
    index: list[int]
    current: Int64Vector
    figures: Int64Vector
    replicas: Int64Vector
    proposals: list[int]
    average: list[int]
    percent: list[int]
    walked: dict[int, Proposal]

    def arithmetic(self, index: int) -> Arithmetic:
        """Return the numbers of one HPA."""
        if index in self.walked:
            return self.walked[index].arithmetic
        average, replicas = self.average[index], self.proposals[index]
        target = float(self.segments.target[index])
        if self.segments.metrics[index].utilization is None:
            return Arithmetic(replicas, float(average) / target, None, None, average)
        percent = self.percent[index]
        return Arithmetic(replicas, float(percent) / target, None, percent, average)

    def status(self, index: int) -> MetricStatus:
        """Return the entry of the status of one HPA."""
        if index in self.walked:
            return self.walked[index].status
        metric = self.segments.metrics[index]
        utilization = None if metric.utilization is None else self.percent[index]
        return status_of(metric, self.average[index], utilization)


class Ordinary(NamedTuple):
    """The results for the ordinary HPAs; (all HPAs,) each.

    Attributes:
        mask: Which HPAs are ordinary; the other columns mean nothing elsewhere.
        best: The largest proposal, at least 0; ``winner`` the place of its metric.
        held: After stabilization; ``slot`` where the proposal is to be remembered.
        cells: By place in the spec, then by resource.
        specs: (all HPAs,)
    """

    mask: BoolVector
    best: Int64Vector
    winner: Int64Vector
    held: Int64Vector
    slot: Int64Vector
    cells: dict[int, list[Cell]]
    specs: Sequence[Autoscaler]

    def cell(self, at: int, position: int) -> tuple[Cell, int]:
        """Return the cell of an HPA's metric, and the HPA's position in it."""
        for cell in self.cells[at]:
            index = cell.index[position]
            if index >= 0:
                return cell, index
        raise AssertionError("an ordinary HPA has a cell for each metric")

    def grounds(self, position: int) -> tuple[list[Proposal | MetricFailure], list[Known]]:
        """Return proposals and tallies of one HPA, for explanations."""
        proposals: list[Proposal | MetricFailure] = []
        tallies: list[Known] = []
        for at, metric in enumerate(self.specs[position].metrics):
            cell, index = self.cell(at, position)
            tallies.append(cell.tallies.at(index))
            proposals.append(present(metric, cell.arithmetic(index)))
        return proposals, tallies


class Newest(msgspec.Struct, eq=False):
    """The newest pass over the same HPAs: repeated verdicts are explained by it."""

    found: Ordinary


class GroundsAt(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Returns the grounds of one HPA by the newest pass."""

    newest: Newest
    position: int

    def __call__(self) -> tuple[list[Proposal | MetricFailure], list[Known]]:
        """As ``Ordinary.grounds``."""
        return self.newest.found.grounds(self.position)
