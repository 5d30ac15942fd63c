"""CPU time of one operation beside what it should cost, as JSON lines."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping

import numpy as np

_MANY_NODES = 5_000
"""Targets hold up to this many nodes; with three times as many, three times as much may be taken."""


def cpu_us(
    work: Callable[[], object],
    *,
    repeat: int = 7,
    number: int = 200,
    before: Callable[[], object] | None = None,
) -> float:
    """Return the median CPU time of one call in microseconds; ``before`` runs ahead of each run, untimed."""
    runs = []
    for _ in range(repeat):
        if before is not None:
            before()
        began = time.process_time_ns()
        for _ in range(number):
            work()
        runs.append((time.process_time_ns() - began) / number / 1000)
    return statistics.median(runs)


def compares_us(nodes: int) -> float:
    """Six compares over as many nodes into one mask: the least that evaluating a class can take."""
    column = np.arange(max(nodes, 1), dtype=np.int64)
    mask = np.ones(max(nodes, 1), np.bool_)

    def compares() -> None:
        for least in range(6):
            np.logical_and(mask, column >= least, out=mask)

    return cpu_us(compares)


class Reporter:
    """Prints the lines of clusters of one size.

    Args:
        nodes: How many nodes the cluster has.
        floor_us: What a line's ratio is to, where it names no floor of its own.
    """

    def __init__(self, nodes: int, floor_us: float) -> None:
        self.nodes = nodes
        self._floor_us = floor_us
        self._scale = max(1.0, nodes / _MANY_NODES)

    def line(
        self,
        operation: str,
        measured_us: float,
        *,
        target_us: float | None = None,
        upstream_us: float | Mapping[int, float] | None = None,
        floor_us: float | None = None,
        grows: bool = True,
        pods: int | None = None,
    ) -> None:
        """Print one line.

        Args:
            operation: What was measured.
            measured_us: CPU time.
            target_us: At 5,000 nodes at the most; more nodes may take more in proportion.
            upstream_us: CPU time of the same in upstream's code, on a machine of this kind; by nodes where
                it depends on them.
            floor_us: The least that it can take, measured in the same run.
            grows: Whether more nodes are a reason to take longer.
            pods: How many it was about.
        """
        floor = self._floor_us if floor_us is None else floor_us
        line: dict[str, object] = {"operation": operation, "nodes": self.nodes}
        if pods is not None:
            line["pods"] = pods
        line |= {
            "cpu_us": round(measured_us, 2),
            "floor_us": round(floor, 2),
            "ratio": round(measured_us / floor, 2),
        }
        if target_us is not None:
            target = target_us * (self._scale if grows else 1)
            line |= {"target_us": round(target, 2), "of_target": round(measured_us / target, 3)}
        upstream = upstream_us.get(self.nodes) if isinstance(upstream_us, Mapping) else upstream_us
        if upstream is not None:
            line |= {"upstream_us": upstream, "times_less": round(upstream / measured_us, 1)}
        print(json.dumps(line), flush=True)
