"""CPU time of the scheduling operations that a tick repeats, as JSON lines.

Each line has the median of several runs in process CPU time, the target figure where there is one (for
5,000 nodes; with more nodes in proportion), that of upstream's code for the same on this kind of machine,
and the ratio to a floor measured in the same run: six NumPy compares over as many nodes, where
nothing else is said.

    python -m bench.scheduling [--nodes 100,1000,5000,15000] [--only verdicts,placing,...]
"""

from __future__ import annotations

import argparse
import sys

from bench.scheduling.building import measure_building
from bench.scheduling.estimates import measure_empty, measure_existing, measure_full, measure_grouping
from bench.scheduling.measuring import Reporter, compares_us
from bench.scheduling.objects import make_cluster
from bench.scheduling.placing import measure_placing
from bench.scheduling.verdicts import measure_excluded, measure_forks, measure_verdicts
from kubetide.runtime.process import tune_gc

_PARTS = ("empty", "forks", "verdicts", "estimates", "full", "placing", "building")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", default="100,1000,5000,15000")
    parser.add_argument("--only", default=",".join(_PARTS), help=f"of {', '.join(_PARTS)}")
    given = parser.parse_args(arguments)
    parts = given.only.split(",")
    if unknown := [part for part in parts if part not in _PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(_PARTS)}")
    tune_gc()
    if "empty" in parts:
        report = Reporter(0, compares_us(1_000))
        measure_grouping(report)
        measure_empty(report)
    for nodes in map(int, given.nodes.split(",")):
        _measure(nodes, parts)


def _measure(nodes: int, parts: list[str]) -> None:
    report = Reporter(nodes, compares_us(nodes))
    if {"forks", "verdicts", "estimates", "placing"} & {*parts}:
        snapshot = make_cluster(nodes)
        if "forks" in parts:
            measure_forks(snapshot, report)
        if "verdicts" in parts:
            measure_verdicts(snapshot, report)
        if "estimates" in parts:
            measure_existing(snapshot, report)
        if "placing" in parts:
            measure_placing(snapshot, report)
        if "verdicts" in parts:
            measure_excluded(snapshot, report)
        del snapshot
    if "full" in parts:
        measure_full(nodes, report)
    if "building" in parts:
        measure_building(nodes, report)


if __name__ == "__main__":
    main(sys.argv[1:])
