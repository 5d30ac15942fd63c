"""One run of the bill: pods, types and a policy, through the whole program in virtual time."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.bill.feed import MODEL_LABEL, Feed
from bench.bill.rows import PodRow, TypeRow
from bench.bill.use import NodeUse, UseRecord
from kubetide.nodes.facts.nodes import NOMINATION_TAINT
from kubetide.ports.clock import Clock
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.outcome.churn import bought_back, short_lived
from kubetide.simulate.outcome.marks import MarkingRecorder
from kubetide.simulate.outcome.timeline import Mark
from kubetide.simulate.scenarios.machines import prices_of
from kubetide.simulate.scenarios.scenario import (
    InstanceTypeSpec,
    NodeGroupSpec,
    Scenario,
    TaintSpec,
    start_of,
)
from kubetide.simulate.world import World
from kubetide.units.time import Instant, minutes

MOST_NODES = 1000

Flags = dict[str, str | int | float | bool]


@dataclass(frozen=True)
class Policy:
    """Flags of the node loop; all others are upstream's defaults. ``nominates``: groups have the taint for nominations."""

    flags: Flags = field(default_factory=dict)
    nominates: bool = False


_MOVES: Flags = {
    "expander": "least-cost",
    "steer-pods-to-fuller-nodes": True,
    "consolidation-enabled": True,
}
_OURS: Flags = {**_MOVES, "prompt-scale-up": True}
_EARLY: Flags = {"scale-down-unneeded-time": "2m", "scale-down-delay-after-add": "0s"}

POLICIES = {
    "upstream": Policy(),
    "least-waste": Policy({"expander": "least-waste"}),
    "most-pods": Policy({"expander": "most-pods"}),
    "least-nodes": Policy({"expander": "least-nodes"}),
    "least-cost": Policy({"expander": "least-cost"}),
    "least-cost+steer": Policy({"expander": "least-cost", "steer-pods-to-fuller-nodes": True}),
    "least-cost+consolidation": Policy({"expander": "least-cost", "consolidation-enabled": True}),
    "least-cost+steer+consolidation": Policy(_MOVES),
    "ours": Policy(_OURS, nominates=True),
    "ours+remember": Policy({**_OURS, "remember-demand": "30m"}, nominates=True),
    "ours+early": Policy({**_OURS, **_EARLY}, nominates=True),
    "ours+early+remember": Policy(
        {**_OURS, **_EARLY, "remember-demand": "30m", "buy-back-price": "2m"}, nominates=True
    ),
    "upstream+steer": Policy({"steer-pods-to-fuller-nodes": True}),
    "upstream+nominate": Policy(nominates=True),
}


class Played(NamedTuple):
    """What came of a run: its figures, and which pods were on which nodes."""

    figures: dict[str, Any]
    uses: list[NodeUse]


def play(
    pods: Sequence[PodRow],
    types: Sequence[TypeRow],
    policy: str,
    *,
    horizon_s: float,
    scheduler: str,
    seed: int,
) -> Played:
    """Return what comes of the pods that arrive before the horizon, under a policy."""
    there = [pod for pod in pods if pod.arrival_s < horizon_s]
    scenario = _scenario(types, POLICIES[policy], scheduler)
    end = Instant(start_of(scenario) + round(horizon_s * 1e9))
    runs: list[tuple[World, UseRecord]] = []
    marks: list[Mark] = []

    async def main(clock: Clock) -> None:
        with tempfile.TemporaryDirectory() as folder:
            recorder = MarkingRecorder(NullRecorder(), marks.append)
            world = World(scenario, clock, base=Path(folder), end=end, seed=seed, recorder=recorder)
            world.timeline.prices, world.timeline.marks = prices_of(scenario), marks
            feed = Feed(there, world.cluster, clock, world.start)
            record = UseRecord([one.name for one in types], clock, world.start)
            world.pods.on_change(feed.pod_changed)
            world.pods.on_change(record.pod_changed)
            world.nodes.on_change(record.node_changed)
            runs.append((world, record))
            async with asyncio.TaskGroup() as group:
                feeding = group.create_task(feed.run())
                await world.run()
                feeding.cancel()

    began = time.process_time()
    run_virtual(main, start=Instant(start_of(scenario) - minutes(1)))
    cpu_s = time.process_time() - began
    [(world, record)] = runs
    return Played({**_figures(there, world, horizon_s), "cpu_s": round(cpu_s, 1)}, record.uses())


def _scenario(types: Sequence[TypeRow], policy: Policy, scheduler: str) -> Scenario:
    return Scenario(
        name="bill",
        step="30s",
        warm_up="1m",
        duration="1h",
        instance_types={
            one.name: InstanceTypeSpec(
                cpu=f"{one.cpu_m}m",
                memory=f"{one.memory_mib}Mi",
                pods=one.max_pods,
                gpu=one.gpus,
                price_per_hour=one.usd_per_hour,
                reserved_cpu="0",
                reserved_memory="0",
            )
            for one in types
        },
        node_groups=tuple(
            NodeGroupSpec(
                name=one.name.replace(".", "-"),
                instance_type=one.name,
                max=MOST_NODES,
                labels={MODEL_LABEL: one.gpu_model} if one.gpu_model else {},
                boot_time="60s-90s",
                taints=(TaintSpec(key=NOMINATION_TAINT, effect="NoSchedule"),) if policy.nominates else (),
            )
            for one in types
        ),
        scheduler=scheduler,
        loops=("nodes",),
        flags={"demand-sources": "pending", **policy.flags},
    )


def _figures(pods: Sequence[PodRow], world: World, horizon_s: float) -> dict[str, Any]:
    timeline = world.timeline
    pod_hours = sum(min(pod.departure_s, horizon_s) - pod.arrival_s for pod in pods) / 3600
    waits = np.array(timeline.waits or [0.0])
    followed, brought = bought_back(timeline)
    found: dict[str, Any] = {
        "pods": len(pods),
        "cost_usd": round(timeline.cost[-1], 4) if timeline.cost else 0.0,
        "wait_s": [round(float(one), 3) for one in (*np.percentile(waits, [50, 95]), waits.max())],
        "wait_mean_s": round(float(waits.mean()), 3),
        "bought": sum(mark.change for mark in timeline.marks if mark.loop == "nodes" and mark.change > 0),
        "deleted": sum(one.deleted is not None for one in timeline.node_lives),
        "lived_under_15m": short_lived(timeline),
        "bought_back_15m": followed,
        "nodes_bought_back_15m": brought,
        "evictions": timeline.evictions,
        "evictions_per_pod_hour": round(timeline.evictions / pod_hours, 6) if pod_hours else 0.0,
        "left_pending": len(timeline.waiting_since),
    }
    if violations := world.violations():
        found["violations"] = violations
    return found
