"""Load series against policies: `python -m bench plan [SERIES...] [--metric cpu|rate] [--policy P]... [--nodes]`.

Each pair of a series and a policy is a run of the whole program in virtual time: HPA loop, node loop, embedded cluster.
Without a series the eleven given ones are run, from the folder `--data`. The table is for people; the last line is
one JSON object. `classic` is the HPA on CPU with upstream's node loop, whatever `--metric` says.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from bench.plan_results import Results, key_of
from bench.plan_series import Series, given, parse_series
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.outcome.summary import minutes_lost
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import (
    InstanceTypeSpec,
    LoadSpec,
    NodeGroupSpec,
    PodTimes,
    Scenario,
    ServiceSpec,
)
from kubetide.units.time import Duration, format_duration, seconds

TICK = seconds(15)
TARGET = 70
"""Of the HPA, in percent of what a pod serves at full use."""
PODS_A_NODE = 7
MOST_NODES = 50


@dataclass(frozen=True)
class Policy:
    """How pods and nodes are scaled.

    Attributes:
        metric: ``cpu``, ``rate``, or empty for what the command line says.
        flags: Of the HPA loop; ``node_flags`` of the node loop.
    """

    metric: str = ""
    flags: dict[str, str | int | float | bool] = field(default_factory=dict)
    node_flags: dict[str, str | int | float | bool] = field(default_factory=dict)


_PLAN: dict[str, str | int | float | bool] = {
    "horizontal-pod-autoscaler-forecast": "calendar",
    "horizontal-pod-autoscaler-emptiest-node-first": True,
}
_PLAN_NODES: dict[str, str | int | float | bool] = {
    "demand-sources": "pending,intents",
    "scale-down-unneeded-time": "30s",
}

POLICIES = {
    "classic": Policy("cpu", node_flags={"demand-sources": "pending"}),
    "classic-rate": Policy("rate", node_flags={"demand-sources": "pending"}),
    "strict": Policy(
        flags={"horizontal-pod-autoscaler-forecast": "strict"},
        node_flags={"demand-sources": "pending,intents"},
    ),
    "plan": Policy(flags=_PLAN, node_flags=_PLAN_NODES),
    "learned": Policy(
        flags={**_PLAN, "horizontal-pod-autoscaler-forecaster": "headroom"}, node_flags=_PLAN_NODES
    ),
}
"""``strict`` is the larger of HPA and calendar; ``plan`` all that the forecast turns on, with cheap scale-in of
nodes; ``learned`` the same with headroom learned from a load's own errors."""

FIGURES = (
    "slo_minutes", "slo_minutes_own_step", "unserved", "pod_minutes", "node_cost", "rescales", "nodes_bought",
    "evictions",
)  # fmt: skip

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: site}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: site}}}}
  template:
    metadata: {{labels: {{app: site}}}}
    spec:
      containers:
        - name: web
          image: site
          resources: {{requests: {{cpu: 500m, memory: 256Mi}}, limits: {{cpu: 500m}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: site}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: site}}
  minReplicas: 1
  maxReplicas: {most}
  metrics: [{metric}]
"""

METRICS = {
    "cpu": "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: %d}}}",
    "rate": "{type: Object, object: {metric: {name: requests_per_second}, describedObject: {apiVersion: apps/v1, "
    "kind: Deployment, name: site}, target: {type: AverageValue, averageValue: %s}}}",
}


def scenario(series: Series, policy: Policy, metric: str, *, nodes: bool, target: int = TARGET) -> Scenario:
    """Return the run of a series; its load is in the file ``load.txt``."""
    metric = policy.metric or metric
    share = target if metric == "cpu" else f"{round(target * series.capacity * 10)}m"
    steps_a_tick = max(1, TICK // series.step)
    first = float(np.mean(series.values[:steps_a_tick]))
    replicas = max(1, math.ceil(first / (target / 100 * series.capacity)))
    whole = Duration(len(series.values) * series.step // TICK * TICK)
    group = NodeGroupSpec(
        name="general",
        instance_type="m5.xlarge" if nodes else "endless",
        min=0 if nodes else 1,
        max=MOST_NODES if nodes else 1,
        initial=min(MOST_NODES, -(-replicas // PODS_A_NODE)) if nodes else 1,
        boot_time="180s",
    )
    flags = {"horizontal-pod-autoscaler-cpu-initialization-period": "0s", **policy.flags}
    return Scenario(
        name=series.name,
        duration=format_duration(whole),
        instance_types={"endless": InstanceTypeSpec(cpu=5000, memory="16Ti", pods=9000, price_per_hour=1.0)},
        node_groups=(group,),
        pods=PodTimes(image_pull="0s", start="0s", ready="60s", stop="0s"),
        loops=("horizontal", "nodes") if nodes else ("horizontal",),
        flags={**flags, **(policy.node_flags if nodes else {})},
        services=(
            ServiceSpec(
                deployment="site",
                cpu_seconds_per_request=0.5 / series.capacity,
                load=LoadSpec(trace="load.txt", step=format_duration(series.step)),
            ),
        ),
        manifests=(
            MANIFEST.format(
                replicas=replicas,
                most=PODS_A_NODE * MOST_NODES if nodes else 1000,
                metric=METRICS[metric] % share,
            ),
        ),
    )


def run(
    series: Series,
    name: str,
    metric: str,
    *,
    nodes: bool,
    seed: int,
    target: int = TARGET,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Return the figures of a series under a policy; its records stay in ``keep``, by series and policy."""
    series = series.in_fine_units()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        out = folder / "out" if keep is None else keep / series.name / name
        (folder / "load.txt").write_text("\n".join(map(repr, series.values.tolist())))
        reported = scenario(series, POLICIES[name], metric, nodes=nodes, target=target)
        result = run_simulation(reported, base=folder, out=out, seed=seed, warn=lambda _: None)
        service, timeline = result.summary.services[0], result.timeline
        line = timeline.services["site"]
        found: dict[str, Any] = {
            "slo_minutes": minutes_lost(line.violated, timeline.step_s),
            "slo_minutes_own_step": minutes_lost(line.violated_own_step, timeline.step_s),
            "unserved": service.unserved_share,
            "pod_minutes": service.pod_minutes,
            "node_cost": round(timeline.cost[-1], 4) if nodes else 0.0,
            "rescales": service.rescales,
            "nodes_bought": sum(m.change for m in timeline.marks if m.loop == "nodes" and m.change > 0),
            "evictions": _evictions(out) if nodes else 0,
        }
        if result.violations:
            found["violations"] = list(result.violations)
        return found


def figures_of(
    series: Sequence[Series],
    policies: Sequence[str],
    metric: str,
    *,
    nodes: bool,
    seed: int,
    jobs: int,
    results: Results,
    target: int = TARGET,
    keep: Path | None = None,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the figures of all pairs, by series and policy; what is among the results is not run again."""
    targets = {name: TARGET if name.startswith("classic") else target for name in policies}
    played = {"metric": metric, "nodes": nodes, "seed": seed}
    keys = {
        (one.name, name): key_of(
            one, {"policy": asdict(POLICIES[name]), "name": name, "target": targets[name], **played}
        )
        for one in series
        for name in policies
    }
    # A process a run: what a long one has allocated goes with it.
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1, mp_context=get_context("spawn")) as pool:
        going = {
            pool.submit(run, one, name, metric, nodes=nodes, seed=seed, target=targets[name], keep=keep): (
                one.name,
                name,
            )
            for one in series
            for name in policies
            if results.get(keys[one.name, name]) is None
        }
        for done in as_completed(going):
            results.add(keys[going[done]], *going[done], done.result())
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (one_name, policy), key in keys.items():
        figures = results.get(key)
        assert figures is not None, "every pair was run or known"
        found.setdefault(one_name, {})[policy] = figures
    return found


def _evictions(out: Path) -> int:
    """Return how many pods the node loop has evicted."""
    return sum(bytes(record.commands).count(b'"op":"evictPod"') for record in read_records(out, "nodes"))


def summed(figures: list[dict[str, Any]], loads: list[float]) -> dict[str, Any]:
    """Return the sums over series; the unserved share is weighted by requests."""
    total: dict[str, Any] = {name: round(sum(one[name] for one in figures), 4) for name in FIGURES}
    total["unserved"] = round(
        sum(one["unserved"] * load for one, load in zip(figures, loads, strict=True)) / max(sum(loads), 1e-9),
        6,
    )
    return total


def table(found: dict[str, dict[str, dict[str, Any]]], total: dict[str, dict[str, Any]]) -> str:
    """Return all figures for people; costs are shown against the first policy's too."""
    heads = (
        "series",
        "policy",
        "SLO min",
        "own step",
        "unserved",
        "pod-min",
        "nodes $",
        "x",
        "rescales",
        "bought",
        "evicted",
    )
    rows = [heads]
    for name, policies in {**found, "all": total}.items():
        base = next(iter(policies.values()))
        by = "node_cost" if base["node_cost"] else "pod_minutes"
        for policy, one in policies.items():
            ratio = one[by] / base[by] if base[by] else 1.0
            rows.append(
                (
                    name,
                    policy,
                    f"{one['slo_minutes']:,}",
                    f"{one['slo_minutes_own_step']:,}",
                    f"{100 * one['unserved']:.2f}%",
                    f"{one['pod_minutes']:,.0f}",
                    f"{one['node_cost']:,.2f}",
                    f"{ratio:.3f}",
                    f"{one['rescales']:,}",
                    f"{one['nodes_bought']:,}",
                    f"{one['evictions']:,}",
                )
            )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench plan", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("series", nargs="*", help="FILE:step=1s:capacity=50:scale=1; none for the given ones")
    parser.add_argument("--metric", choices=("cpu", "rate"), default="cpu")
    parser.add_argument("--policy", action="append", choices=sorted(POLICIES))
    parser.add_argument(
        "--nodes", action="store_true", help="a group of m5.xlarge, 0 to 50, that boots in 180 s"
    )
    parser.add_argument(
        "--target", type=int, default=TARGET, help="of the HPA in percent, but for classic, which has 70"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument(
        "--jobs", type=int, default=2, help="runs side by side; they do not change the figures"
    )
    parser.add_argument(
        "--results", type=Path, help="a file that ended runs are added to; those it has are not run again"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="a folder for the records of each run, as SERIES/POLICY, for kubetide explain",
    )
    said = parser.parse_args()
    try:
        series = [parse_series(text) for text in said.series] or given(said.data)
        results = Results(said.results)
    except (OSError, ValueError) as error:
        print(f"bench plan: {error}", file=sys.stderr)
        return 2
    policies = said.policy or ["classic", "plan"]
    if not 1 <= said.target <= 100:
        print(f"bench plan: --target {said.target}: give a percentage from 1 to 100", file=sys.stderr)
        return 2
    found = figures_of(
        series,
        policies,
        said.metric,
        nodes=said.nodes,
        seed=said.seed,
        jobs=said.jobs,
        results=results,
        target=said.target,
        keep=said.keep,
    )
    loads = [float(one.values.sum()) * (one.step / seconds(1)) for one in series]
    total = {policy: summed([found[one.name][policy] for one in series], loads) for policy in policies}
    print(table(found, total))
    print(json.dumps({"series": found, "sum": total}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
