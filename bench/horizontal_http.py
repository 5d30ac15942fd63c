"""What a whole tick of the horizontal loop costs over HTTP, and how long it holds up others. Prints JSON lines.

The API server is the embedded one, in a process of its own; so is the loop, as ``kubetide run --act`` makes
it, with the client's limits raised (``--kube-api-qps``, ``--concurrent-horizontal-pod-autoscaler-syncs``).
Between two ticks the usage of every pod changes, so that every status is written. ``longest_hold_ms`` is the CPU time
between two turns of another task of the loop's process. ``floor_s`` is the CPU time of as many bare requests
of the same client, one after another.

``python -m bench horizontal_http``; ``python -m bench.horizontal_http 1000 100`` for other numbers of HPAs and pods each.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from bench.usage import usage_of
from kubetide.cluster import HttpCluster, HttpMetrics, load_kubeconfig
from kubetide.cluster.limits import Limits
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings
from kubetide.ports.clock import Clock
from kubetide.runtime.process import trim_freed_memory, tune_gc
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import Duration, milliseconds
from kubetide.watching import Caches

TICKS = 5
WRITES = 32
_TURN = milliseconds(1)


def main() -> None:
    match sys.argv[1:]:
        case ["loop", folder]:
            run_real(lambda clock: loop(clock, Path(folder)))
        case [hpas, each]:
            measure(int(hpas), int(each))
        case _:
            measure(10_000, 10)


# ── The loop ────────────────────────────────────────────────────────────────────────────────────


class Requests:
    """Counts requests by method."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def answered(self, method: str, code: str, took: Duration) -> None:
        del code, took
        self.seen[method] += 1

    def waited(self, method: str, waited: Duration) -> None: ...

    def repeated(self, method: str, code: str) -> None: ...


class Turns:
    """Another task of the process: how much CPU time passes between two of its turns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.longest = 0.0

    async def run(self) -> None:
        while True:
            start = process_time()
            await self._clock.sleep(_TURN)
            self.longest = max(self.longest, process_time() - start)


async def loop(clock: Clock, folder: Path) -> None:
    """Run ticks one after another and print what each cost."""
    tune_gc()
    trim_freed_memory()
    requests, turns = Requests(), Turns(clock)
    connection = load_kubeconfig(folder / "kubeconfig")
    limits = Limits(qps=5_000, burst=5_000, writes=WRITES)
    recorder = RecordWriter(folder / "out", warn=print)
    recorder.start()
    async with HttpCluster(connection, clock, limits=limits, observer=requests) as cluster:
        caches = Caches(cluster, clock)
        settings = Settings(concurrent_syncs=WRITES)
        controller = HorizontalController(
            cluster, HttpMetrics(cluster, clock), clock, recorder, None, settings, caches=caches
        )
        others = [asyncio.ensure_future(turns.run()), asyncio.ensure_future(caches.run())]
        for informer in caches.all:
            await informer.synced()
        print(json.dumps({"synced_rss_mib": round(usage_of(os.getpid())["rss_mib"])}), flush=True)
        for number in range(TICKS):
            # What the writes of the last tick set off comes back by watch: that is part of the next tick.
            requests.seen.clear()
            turns.longest = 0.0
            began, cpu = monotonic(), process_time()
            await controller.tick()
            line: dict[str, float] = {
                "tick": number,
                "wall_s": round(monotonic() - began, 2),
                "cpu_s": round(process_time() - cpu, 2),
                "reads": requests.seen["GET"],
                "writes": requests.seen["PATCH"] + requests.seen["PUT"] + requests.seen["POST"],
                "longest_hold_ms": round(1000 * turns.longest),
                "rss_mib": round(usage_of(os.getpid())["rss_mib"]),
            }
            print(json.dumps(line), flush=True)
        floor = await bare_requests(cluster, sum(requests.seen.values()))
        print(json.dumps({"floor_s": floor}), flush=True)
        for task in others:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    recorder.close()


async def bare_requests(cluster: HttpCluster, count: int) -> float:
    """CPU time of that many small requests."""
    start = process_time()
    for _ in range(1000):
        await cluster.get_raw("/version")
    return round((process_time() - start) / 1000 * count, 2)


# ── The measuring ───────────────────────────────────────────────────────────────────────────────


def measure(hpas: int, each: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        server = child("bench.horizontal_http_server", name, str(hpas), str(each))
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            start = usage_of(server.pid)["cpu_s"]
            lines = list(reported(child("bench.horizontal_http", "loop", name)))
            spent = usage_of(server.pid)["cpu_s"] - start
        finally:
            server.kill()
            server.wait()
    for line in lines:
        print(json.dumps({"name": "horizontal_http", "hpas": hpas, "pods": hpas * each, **line}), flush=True)
    print(json.dumps({"name": "horizontal_http/server", "hpas": hpas, "cpu_s": round(spent, 1)}), flush=True)


def reported(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    assert process.stdout is not None
    found = [json.loads(line) for line in process.stdout]
    process.wait()
    return found


def child(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    main()
