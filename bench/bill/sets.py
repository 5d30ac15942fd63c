"""The given sets: pods made from the public traces of the data folder, each with types of nodes at their prices.

``python -m bench bill azure`` makes and plays one; the makings are the same for equal seeds.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.bill.rows import PodRow, TypeRow, open_text

HOUR = 3600.0
_MIB_A_GIB = 1024


class BillSet(NamedTuple):
    """Pods, types, and how long they are played."""

    pods: list[PodRow]
    types: list[TypeRow]
    horizon_s: float


def azure(data: Path, seed: int, first_h: int = 0) -> BillSet:
    """8 hours of Azure's arrivals of 2017, from ``first_h`` on, thinned to some 700 machines, on m6i, c6i, r6i."""
    folder, draw, horizon = data / "azure-vm-2017-arrivals", random.Random(seed), 8 * HOUR
    edges: dict[int, list[float]] = {}
    for line in lines(folder / "v1.interval_map.txt.gz"):
        second, number = line.split()
        edges.setdefault(int(number), []).append(float(second))
    flavours: dict[str, tuple[int, int]] = {}
    for line in lines(folder / "flav_map.txt.gz"):
        size, letter = line.split()
        cores, gib = size.split(",")
        flavours[letter] = int(cores) * 1000, round(float(gib) * _MIB_A_GIB)
    steps = slice(first_h * 12, first_h * 12 + int(horizon / 300))
    arrivals = list(lines(folder / "v1.dev.txt.gz"))[steps]
    durations = list(lines(folder / "v1.dev.c2100000.txt.gz"))[steps]
    every: list[PodRow] = []
    for at, (kinds, ends) in enumerate(zip(arrivals, durations, strict=True)):
        batch = 0
        for letter, end in zip(_items(kinds), _items(ends), strict=True):
            if letter == "|":
                batch += 1
                continue
            low = min(edges[int(end[1:])])
            high = max(edges[int(end[1:])]) + 300.0
            arrival = at * 300.0 + draw.uniform(0, 300)
            lasts = high * 10 if end[0] == "C" else draw.uniform(low, high)
            cpu, memory = flavours[letter]
            every.append(
                PodRow(
                    round(arrival, 1),
                    round(min(arrival + max(lasts, 30.0), 10 * horizon), 1),
                    cpu,
                    memory,
                    0,
                    "",
                    f"{at}-{batch}-{letter}",
                    "deployment",
                )
            )
    pods = [pod for pod in every if draw.random() < 700 / len(every)]
    return BillSet(sorted(pods), aws_types(data, type_names("m6i", "c6i", "r6i")), horizon)


def surf(data: Path, seed: int) -> BillSet:
    """8 hours of the tasks of SURF's Lisa cluster, half of them, with sizes drawn from 2 to 16 cores; all are jobs."""
    draw, horizon = random.Random(seed), 8 * HOUR
    rows = list(rows_of(data / "surf-lisa-hpc" / "tasks_first70pct.csv.gz"))
    # The first eight hours in which a thousand tasks come.
    first = int(rows[0]["submission_time"]) / 1000 + 12 * horizon
    pods = []
    for row in rows:
        arrival = int(row["submission_time"]) / 1000 - first
        if not 0 <= arrival < horizon or draw.random() >= 0.5:
            continue
        cores = draw.choice((2, 4, 8, 16))
        memory = cores * draw.choice((2, 4, 6)) * _MIB_A_GIB
        lasts = max(int(row["duration"]) / 1000, 1.0)
        pods.append(PodRow(arrival, arrival + lasts, cores * 1000, memory, 0, "", f"{cores}-{memory}", "job"))
    return BillSet(sorted(pods), aws_types(data, type_names("m6i", "c6i", "r6i")), horizon)


def gpu(data: Path, seed: int) -> BillSet:
    """Alibaba's GPU pods of 2023 (``gpuspec10``), 300 hours of them in 10; best-effort ones are jobs."""
    del seed
    horizon, faster, first = 10 * HOUR, 30.0, 10_800_000
    models = {"T4": "T4", "A10": "A10G", "V100M32": "V100"}
    pods = []
    for row in rows_of(data / "alibaba-gpu-2023" / "openb_pod_list_gpuspec10.csv.gz"):
        arrival = (int(row["creation_time"]) - first) / faster
        departure = (int(row["deletion_time"]) - first) / faster
        if arrival >= horizon or departure <= 0:
            continue
        said = row["gpu_spec"].split("|")
        selector = next((models[one] for one in said if one in models), "")
        shape = int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"])
        pods.append(
            PodRow(
                max(0.0, round(arrival, 2)),
                round(max(departure, arrival + 1), 2),
                *shape,
                selector,
                "-".join(map(str, (*shape, selector))),
                "deployment" if row["qos"] == "LS" else "job",
            )
        )
    names = {"p3dn.24xlarge", "g4dn.metal", *type_names("m6i", "c6i", "r6i", "g4dn", "g5")}
    types = aws_types(data, names)
    return BillSet(sorted(pod for pod in pods if any(one.fits(pod) for one in types)), types, horizon)


def dlrm(data: Path, seed: int) -> BillSet:
    """Alibaba's recommendation models of 2025: a quarter of the pods of 12 applications, 48 times as fast."""
    draw, faster = random.Random(seed), 48.0
    horizon = 31 * 24 * HOUR / faster
    every = list(rows_of(data / "alibaba-dlrm-2025" / "disaggregated_DLRM_trace_public.csv.gz"))
    by_app: dict[str, list[dict[str, str]]] = {}
    for row in every:
        by_app.setdefault(row["app_name"], []).append(row)
    middling = sorted(name for name, rows in by_app.items() if 100 <= len(rows) <= 500)
    pods = []
    for app in sorted(draw.sample(middling, 12)):
        for row in by_app[app]:
            if draw.random() >= 0.25:
                continue
            arrival = float(row["creation_time"] or 0) / faster
            departure = float(row["deletion_time"]) / faster if row["deletion_time"] else 10 * horizon
            shape = (
                round(float(row["cpu_request"]) * 1000),
                round(float(row["memory_request"]) * _MIB_A_GIB),
                int(float(row["gpu_request"])),
            )
            pods.append(
                PodRow(
                    round(max(0.0, arrival), 2),
                    round(max(departure, arrival + 1), 2),
                    *shape,
                    "",
                    f"{app}-{row['role']}-{'-'.join(map(str, shape))}",
                    "deployment",
                )
            )
    names = {
        *type_names("m6i", "c6i", "r6i", "g4dn", "g5", sizes=("4", "8", "12", "16", "24")),
        "g4dn.metal",
        "g5.48xlarge",
    }
    types = aws_types(data, names)
    return BillSet(sorted(pod for pod in pods if any(one.fits(pod) for one in types)), types, horizon)


SETS: dict[str, Callable[[Path, int], BillSet]] = {"azure": azure, "surf": surf, "gpu": gpu, "dlrm": dlrm}


def type_names(*families: str, sizes: tuple[str, ...] = ("", "2", "4", "8")) -> set[str]:
    return {f"{family}.{size}xlarge" for family in families for size in sizes}


def aws_types(data: Path, names: set[str]) -> list[TypeRow]:
    return sorted(
        TypeRow(
            row["type"],
            int(row["vcpu"]) * 1000,
            int(row["memory_bytes"]) >> 20,
            int(row["gpu_count"]),
            row["gpu_model"],
            int(row["max_pods"]),
            float(row["ondemand_usd_per_hour"]),
        )
        for row in rows_of(data / "node-catalogue" / "node_types.csv")
        if row["provider"] == "aws" and row["type"] in names
    )


def _items(line: str) -> Iterator[str]:
    """Return the items of a line behind its time."""
    return (item for item in line.split(" ", 1)[1].strip().split(",") if item)


def lines(path: Path) -> Iterator[str]:
    with open_text(path) as file:
        yield from file


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    with open_text(path) as file:
        yield from csv.DictReader(file)
