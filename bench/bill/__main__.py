"""The bill of a stretch of time against a bound: `python -m bench bill [SETS...] [--policy P]... [--hours H] [--seeds N]`.

A set is azure, surf, gpu or dlrm, made from the traces in the folder `--data`; none means all four. Nothing was tuned on
azure-later, hpc, mix, pools and services. `--pods FILE --types FILE` play other pods. Arrivals and departures go through the
production node loop and an embedded cluster in virtual time. The table is for people; the last line is one JSON object.
`--gap` says what adds how much to the bound.

One draw of boots and pods moves the cost by a tenth. `--seeds N` plays N draws, and the JSON has their means.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.bill.bound import bound_usd
from bench.bill.gap import MEANINGS, OF_WHOLE_NODES, PARTS, gap_usd
from bench.bill.play import POLICIES, Played, play
from bench.bill.rows import PodRow, TypeRow, check, impossible, read_pods, read_types
from bench.bill.sets import HOUR, SETS, BillSet
from bench.bill.unseen_sets import UNSEEN_SETS
from kubetide.scheduling.scoring.profile import PROFILES

DATA = Path(os.environ.get("BENCH_DATA", Path(__file__).parents[3] / "shared" / "data"))
MOST_HOURS = 24 * 366


def table(name: str, found: dict[str, dict[str, Any]]) -> str:
    """Return the figures of a set for people."""
    heads = (
        "set", "policy", "pods", "bound $", "cost $", "ratio", "wait mean", "p50", "p95", "max s", "bought", "deleted",
        "< 15 min", "bought back", "evicted", "/pod-hour", "pending", "CPU s",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [heads]
    for policy, one in found.items():
        rows.append(
            (
                name,
                policy,
                f"{one['pods']:,.0f}",
                f"{one['bound_usd']:,.2f}",
                f"{one['cost_usd']:,.2f}",
                f"{one['ratio']:.3f}",
                *(f"{wait:,.0f}" for wait in (one["wait_mean_s"], *one["wait_s"])),
                f"{one['bought']:,.0f}",
                f"{one['deleted']:,.0f}",
                f"{one['lived_under_15m']:,.0f}",
                f"{one['bought_back_15m']:,.0f}",
                f"{one['evictions']:,.0f}",
                f"{one['evictions_per_pod_hour']:.4f}",
                f"{one['left_pending']:,.0f}",
                f"{one['cpu_s']:,.0f}",
            )
        )
    return _aligned(rows)


def gap_table(name: str, found: dict[str, dict[str, Any]]) -> str:
    """Return the parts of the cost as shares of the bound, for people."""
    rows: list[tuple[str, ...]] = [("set", "policy", *PARTS, "ratio", OF_WHOLE_NODES)]
    for policy, one in found.items():
        parts = one["gap"]
        shares = (*(parts[part] for part in PARTS), one["ratio"], parts[OF_WHOLE_NODES])
        rows.append((name, policy, *(f"{share:.3f}" for share in shares)))
    return _aligned(rows)


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _print_tables(name: str, found: dict[str, dict[str, Any]]) -> None:
    print(table(name, found), flush=True)
    if all("gap" in one for one in found.values()):
        print(gap_table(name, found), flush=True)


def _draws(said: argparse.Namespace) -> dict[int, dict[str, BillSet]]:
    """Return what is to be played, by seed. Raises OSError, ValueError."""
    if said.seeds < 1:
        raise ValueError(f"--seeds {said.seeds}: give a number of draws, 1 or more")
    return {seed: _sets(said, seed) for seed in range(said.seed, said.seed + said.seeds)}


def _sets(said: argparse.Namespace, seed: int) -> dict[str, BillSet]:
    """Return what is to be played with a seed. Raises OSError, ValueError."""
    every = {**SETS, **UNSEEN_SETS}
    if unknown := [name for name in said.sets if name not in every]:
        raise ValueError(f"no set {unknown[0]}; there are {', '.join(every)}")
    if said.hours is not None and not 0 < said.hours < MOST_HOURS:
        raise ValueError(f"--hours {said.hours:g}: give a number of hours above 0, such as 8")
    if (said.pods is None) != (said.types is None):
        raise ValueError("give --pods and --types together")
    if said.pods is not None:
        if said.sets:
            raise ValueError("give sets, or --pods and --types, not both")
        pods, types = read_pods(said.pods), read_types(said.types)
        check(pods, types)
        name = said.pods.name.removesuffix(".gz").removesuffix(".csv")
        return {name: BillSet(pods, types, max(pod.departure_s for pod in pods))}
    found = {name: every[name](said.data, seed) for name in said.sets or SETS}
    for one in found.values():
        check(one.pods, one.types)
    return found


def warnings_of(never_fit: Sequence[PodRow]) -> list[str]:
    """Return a line for each size of pods that fit no type."""
    return [
        f"pods of {cpu}m, {memory} MiB, {gpus}{f' {model}' if model else ''} GPUs fit no type ({count} of them): they "
        f"never run, and the bound leaves them out; add a type that holds them"
        for (cpu, memory, gpus, model), count in sorted(Counter(pod.shape for pod in never_fit).items())
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench bill", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "sets",
        nargs="*",
        metavar="SET",
        help=f"{', '.join(SETS)}, and {', '.join(UNSEEN_SETS)}; none for the first four",
    )
    parser.add_argument("--pods", type=Path, help="a CSV of pods instead of a set")
    parser.add_argument("--types", type=Path, help="a CSV of types of nodes")
    parser.add_argument("--policy", action="append", choices=sorted(POLICIES))
    parser.add_argument("--hours", type=float, help="how long to play; what comes later is left out")
    parser.add_argument("--scheduler", choices=sorted(PROFILES), default="default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many draws to play, from --seed on")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--jobs", type=int, default=2, help="runs side by side; they do not change the figures"
    )
    parser.add_argument(
        "--gap", action="store_true", help="also print what adds how much to the bound, as shares of it"
    )
    said = parser.parse_args(arguments)
    try:
        draws = _draws(said)
    except (OSError, ValueError) as error:
        print(f"bench bill: {error}", file=sys.stderr)
        return 2
    for name, one in draws[said.seed].items():
        for line in warnings_of(impossible(one.pods, one.types)):
            print(f"bench bill: {name}: {line}", file=sys.stderr)
    results = _played(said, draws)
    if said.gap:
        print("\n".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items()))
    print(json.dumps(results[0] if len(results) == 1 else {"sets": results}))
    return 0


def _played(said: argparse.Namespace, draws: dict[int, dict[str, BillSet]]) -> list[dict[str, Any]]:
    """Play each set with each seed and policy, print a table of each set, and return the figures of each."""
    policies = list(dict.fromkeys(said.policy or ["upstream", "ours"]))

    def horizon(one: BillSet) -> float:
        return one.horizon_s if said.hours is None else float(said.hours) * HOUR

    results: list[dict[str, Any]] = []
    with ProcessPoolExecutor(said.jobs) as pool:
        going = {
            (name, seed, policy): pool.submit(
                play,
                one.pods,
                one.types,
                policy,
                horizon_s=horizon(one),
                scheduler=said.scheduler,
                seed=seed,
            )
            for seed, sets in draws.items()
            for name, one in sets.items()
            for policy in policies
        }
        for name in draws[said.seed]:
            each: dict[int, dict[str, Any]] = {}
            for seed, sets in draws.items():
                one = sets[name]
                bound = bound_usd(one.pods, one.types, horizon(one))
                each[seed] = {
                    policy: _figures(
                        going[name, seed, policy].result(), one.types, bound, horizon(one), said.gap
                    )
                    for policy in policies
                }
                _print_tables(name if len(draws) == 1 else f"{name} {seed}", each[seed])
            if len(draws) == 1:
                results.append({"set": name, "policies": each[said.seed]})
                continue
            means = {policy: mean_of([found[policy] for found in each.values()]) for policy in policies}
            _print_tables(f"{name} mean", means)
            results.append({"set": name, "seeds": list(each), "policies": means, "by_seed": each})
    return results


def mean_of(values: list[Any]) -> Any:
    """Return the mean of figures of one shape: of numbers, and of each part of lists and of dicts; of others the first.

    Violations are left out: they are sentences about one draw.
    """
    first = values[0]
    if isinstance(first, dict):
        return {name: mean_of([one[name] for one in values]) for name in first if name != "violations"}
    if isinstance(first, list):
        return [mean_of(list(parts)) for parts in zip(*values, strict=True)]
    if all(isinstance(one, int | float) for one in values):
        return round(fmean(values), 4)
    return first


def _figures(
    played: Played, types: Sequence[TypeRow], bound: float, horizon_s: float, with_gap: bool
) -> dict[str, Any]:
    found = played.figures
    cost = found["cost_usd"]
    ratio = round(cost / bound, 4) if bound else None
    head = {"pods": found["pods"], "bound_usd": round(bound, 4), "cost_usd": cost, "ratio": ratio}
    gap: dict[str, Any] = {}
    if with_gap and bound:
        usd = gap_usd(played.uses, types, cost_usd=cost, bound_usd=bound, horizon_s=horizon_s)
        gap["gap"] = {part: round(value / bound, 4) for part, value in usd.items()}
    return {**head, **{name: value for name, value in found.items() if name not in head}, **gap}


if __name__ == "__main__":
    sys.exit(main())
