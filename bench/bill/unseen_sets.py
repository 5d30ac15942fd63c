"""Sets that nothing was tuned on: named on the command line only, see `docs/quality.md`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.bill.rows import PodRow, TypeRow
from bench.bill.sets import HOUR, BillSet, aws_types, azure, lines, rows_of, type_names


def azure_later(data: Path, seed: int) -> BillSet:
    """Azure's arrivals as in ``azure``, the 8 hours after those."""
    return azure(data, seed, first_h=8)


def hpc(data: Path, seed: int) -> BillSet:
    """A day of NASA's iPSC of 1993, 3 times as fast: a job is one pod for each 8 of its processors, of half a core a processor."""
    del seed
    faster, first, horizon = 3.0, 20 * 24 * HOUR, 8 * HOUR
    pods = []
    for line in lines(data / "hpc-swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"):
        if line.startswith(";") or not line.strip():
            continue
        submitted, runs, processors = (int(line.split()[at]) for at in (1, 3, 4))
        arrival, lasts = (submitted - first) / faster, runs / faster
        if not 0 <= arrival < horizon or lasts <= 0:
            continue
        cpu = min(processors, 8) * 500
        pod = PodRow(0.0, 0.0, cpu, cpu * 2, 0, "", f"{cpu}m", "job")
        pods += [_lived(pod, arrival, arrival + lasts)] * max(1, processors // 8)
    return BillSet(sorted(pods), _types(data), horizon)


def services(data: Path, seed: int) -> BillSet:
    """14 made-up services, each with one wave in 10 hours, and a batch of 20 to 60 short jobs at each full hour."""
    draw, horizon = random.Random(seed), 10 * HOUR
    pods: list[PodRow] = []
    for service in range(14):
        cpu = draw.choice((250, 500, 500, 1000, 2000))
        memory = cpu * draw.choice((2, 4, 4, 8))
        phase, height, base = draw.uniform(0, 0.5), draw.uniform(5, 40), draw.uniform(2, 8)
        live: list[float] = []
        pod = PodRow(0.0, 0.0, cpu, memory, 0, "", f"service-{service}", "deployment")
        for at in range(0, int(horizon), 60):
            wave = max(0.0, math.sin(math.pi * (at / horizon + phase))) ** 2
            replicas = int(base + height * wave * (1 + 0.08 * draw.gauss(0, 1)))
            live += [at + draw.uniform(0, 15) for _ in range(replicas - len(live))]
            # A tenth of slack, as an HPA's tolerance leaves it.
            if replicas < len(live) - max(1, len(live) // 10):
                pods += [_lived(pod, live.pop(), at + 30.0) for _ in range(len(live) - replicas)]
        pods += [_lived(pod, since, 10 * horizon) for since in live]
    job = PodRow(0.0, 0.0, 1000, 2048, 0, "", "batch", "job")
    for hour in range(10):
        for _ in range(draw.randint(20, 60)):
            arrival = hour * HOUR + draw.uniform(0, 20)
            lasts = 20 + draw.expovariate(1 / 400)
            pods.append(_lived(job, arrival, arrival + lasts))
    return BillSet(sorted(pods), _types(data), horizon)


def pools(data: Path, seed: int) -> BillSet:
    """8 h of what two bursty pools used in August 2024, as the replicas of two services: 1.5 cores and 3 GiB, 4 cores and 29 GiB."""
    draw, first, horizon = random.Random(seed), 9000, 8 * HOUR
    pods: list[PodRow] = []
    for pool, cpu, memory in (("cluster28", 1500, 3072), ("cluster9", 4000, 30000)):
        rows = list(rows_of(data / "cluster-pool-capacity-2024" / f"{pool}_2024-08_1min.csv.gz"))
        used = [float(row["cpu"] or 0) for row in rows[first : first + round(horizon / 60)]]
        # 100 cores on average.
        wanted = [min(round(one * len(used) * 100_000 / sum(used) / cpu), 600) for one in used]
        pods += _following(PodRow(0.0, 0.0, cpu, memory, 0, "", pool, "deployment"), wanted, draw)
    return BillSet(sorted(pods), _types(data), horizon)


def _following(pod: PodRow, wanted: Sequence[int], draw: random.Random) -> Iterator[PodRow]:
    """Yield pods that follow a count a minute: up at once, down to the most of the last six minutes, as an HPA's window does it."""
    live: list[float] = []
    for minute in range(len(wanted)):
        at, replicas = minute * 60.0, max(wanted[max(0, minute - 5) : minute + 1])
        live += [at + draw.uniform(0, 15) for _ in range(replicas - len(live))]
        while len(live) > replicas:
            yield _lived(pod, live.pop(draw.randrange(len(live))), at + 30)
    for since in live:
        yield _lived(pod, since, len(wanted) * 600.0)


def mix(data: Path, seed: int) -> BillSet:
    """The pods of ``azure`` and the jobs of ``hpc`` on one fleet."""
    services = azure(data, seed)
    return services._replace(pods=sorted([*services.pods, *hpc(data, seed).pods]))


UNSEEN_SETS: dict[str, Callable[[Path, int], BillSet]] = {
    "azure-later": azure_later,
    "hpc": hpc,
    "mix": mix,
    "pools": pools,
    "services": services,
}


def _lived(pod: PodRow, arrival_s: float, departure_s: float) -> PodRow:
    return pod._replace(arrival_s=round(arrival_s, 1), departure_s=round(departure_s, 1))


def _types(data: Path) -> list[TypeRow]:
    return aws_types(data, type_names("m6i", "c6i", "r6i"))
