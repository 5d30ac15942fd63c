"""The longest time in which a tick lets no other task run, as JSON lines: leases, health and reviews wait so long.

Both loops in one process, as ``kubetide run`` has them, on the clusters of ``bench.memory``, without HPAs. Each loop ticks
a few times; some ticks are recorded with the whole state. Times are CPU time of the process, so that others on the machine
do not count; what the node loop does in another thread counts only as far as it keeps the event loop waiting.

    python -m bench.pauses [NODES ...]
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.memory import Groups, Streaming
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.controller import NodesController
from kubetide.nodes.settings import Settings
from kubetide.ports.clock import Clock
from kubetide.runtime.process import trim_freed_memory, tune_gc
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.timing.clock import run_real
from kubetide.watching import Caches

FULL_EVERY = 5
TICKS = 6


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "one":
        with tempfile.TemporaryDirectory() as folder:
            run_real(lambda clock: measure(clock, int(sys.argv[2]), Path(folder)))
        return
    for size in sys.argv[1:] or ["1000", "5000", "15000"]:
        subprocess.run([sys.executable, "-m", "bench.pauses", "one", size], check=True)


class KnownGroups(Groups):
    """A cloud at rest, with what the controller asks of one."""

    name = "bench"
    knows_machines = "groups"
    pod_prices = None


class Meter:
    """Takes a turn whenever it gets one, and notes the longest time without."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        last = time.process_time()
        while True:
            await asyncio.sleep(0)
            now = time.process_time()
            self.longest = max(self.longest, now - last)
            last = now


async def measure(clock: Clock, nodes: int, folder: Path) -> None:
    """Print a line for each tick of each loop."""
    tune_gc()
    trim_freed_memory()
    recorder = RecordWriter(folder, warn=print, full_every=FULL_EVERY)
    recorder.start()
    cluster: Any = Streaming(nodes)
    cloud: Any = KnownGroups(nodes)
    metrics: Any = None
    caches = Caches(cluster, clock)
    horizontal = HorizontalController(
        cluster, metrics, clock, recorder, None, HorizontalSettings(), caches=caches
    )
    settings = Settings(write_status_configmap=False)
    of_nodes = NodesController(
        cluster, cloud, clock, recorder, None, settings, seed=1, caches=caches, offload=asyncio.to_thread
    )
    caching = asyncio.create_task(caches.run())
    await of_nodes.synced()
    await horizontal.synced()
    meter = Meter()
    metering = asyncio.create_task(meter.run())
    for number in range(TICKS):
        for name, loop in (("nodes", of_nodes), ("horizontal", horizontal)):
            whole = recorder.wants_full(name)
            await asyncio.sleep(0)
            meter.longest, begin = 0.0, time.process_time()
            await loop.tick()
            took = time.process_time() - begin
            await asyncio.sleep(0)
            line = {
                "operation": f"tick {number} of {name}" + (", with the whole state" if whole else ""),
                "nodes": nodes,
                "cpu_s": round(took, 3),
                "longest_pause_s": round(meter.longest, 3),
            }
            print(json.dumps(line), flush=True)
    metering.cancel()
    caching.cancel()
    recorder.close()


if __name__ == "__main__":
    main()
