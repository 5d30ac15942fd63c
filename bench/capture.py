"""A week's records of 1,000 nodes with 30,000 pods, captured. Prints one JSON line.

Some quiet hours are simulated, and their records written again and again with later times, until they are a week or as
much of it as a loop retains. CPU is that of reading them; ``ratio_to_lines`` compares it with reading their lines as records
and nothing of what these say. ``python -m bench.capture 3h FOLDER`` leaves the records in a folder.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.simulation import MANIFEST, POD_RPS
from kubetide.experiments.capture.observed import seen_in
from kubetide.experiments.capture.scenario import captured
from kubetide.runtime.process import tune_gc
from kubetide.runtime.recording.record_writer import MAX_BYTES
from kubetide.runtime.recording.records import is_end, read_records, segments
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import DailySpec, LoadSpec, NodeGroupSpec, Scenario, ServiceSpec
from kubetide.units.time import Duration, minutes, parse_duration

NODES = 1_000
SERVICES = 200
PODS = 150
"""Of each service."""
WEEK = Duration(7 * 24 * 60 * minutes(1))
LOOPS = ("horizontal", "nodes")
_TIMES = re.compile(rb'("now":|"times":\[)(\d+)')


def scenario(duration: str) -> Scenario:
    """Services whose load hardly moves."""
    rps = PODS * POD_RPS * 0.6
    names = [f"service-{number:03d}" for number in range(SERVICES)]
    return Scenario(
        name="quiet",
        duration=duration,
        node_groups=(
            NodeGroupSpec(name="general", instance_type="m5.2xlarge", min=10, max=2 * NODES, initial=NODES),
        ),
        manifests=tuple(
            MANIFEST.format(name=name, replicas=PODS).replace("maxReplicas: 120", f"maxReplicas: {2 * PODS}")
            for name in names
        ),
        services=tuple(
            ServiceSpec(
                deployment=name,
                cpu_seconds_per_request=0.25 / POD_RPS,
                load=LoadSpec(
                    daily=DailySpec(
                        low=0.97 * rps, peak=1.03 * rps, peak_at=f"{number % 24:02d}:00", noise=0.02
                    )
                ),
            )
            for number, name in enumerate(names)
        ),
    )


def write_week(hours: Path, week: Path, length: Duration) -> None:
    """Write the records of some hours again and again; of each loop the newest stay, as much as a run retains."""
    (week / "records").mkdir(parents=True, exist_ok=True)
    times = -(-WEEK // length)
    for loop in LOOPS:
        sources = segments(hours, loop)
        size = sum(path.stat().st_size for path in sources)
        for number in range(max(0, times - MAX_BYTES // size), times):
            for part, source in enumerate(sources):
                target = week / "records" / f"{loop}-{number * len(sources) + part + 1:04d}.jsonl"
                _write_later(source, target, number * length)


def _write_later(source: Path, target: Path, by: int) -> None:
    with source.open("rb") as lines, target.open("wb") as copy:
        for line in lines:
            if not is_end(line):
                copy.write(_TIMES.sub(lambda found: found[1] + b"%d" % (int(found[2]) + by), line))


def measure(folder: Path) -> dict[str, object]:
    """Return what capturing the records of a folder costs."""
    size = sum(path.stat().st_size for loop in LOOPS for path in segments(folder, loop))
    tune_gc()
    begin = time.process_time()
    records = sum(1 for loop in LOOPS for _ in read_records(folder, loop))
    lines = time.process_time() - begin
    begin = time.process_time()
    seen = seen_in(folder)
    captured("week", seen)
    cpu = time.process_time() - begin
    return {
        "name": f"capture of a week of {NODES} nodes and {SERVICES * PODS} pods",
        "cpu_s": round(cpu, 1),
        "target_cpu_s": 120,
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "target_mib": 1024,
        "record_mib": size >> 20,
        "records": records,
        "hours": {
            "horizontal": round((seen.services.last - seen.services.first) / 3.6e12, 1)
            if seen.services
            else 0,
            "nodes": round((seen.cluster.last - seen.cluster.first) / 3.6e12, 1),
        },
        "ratio_to_lines": round(cpu / lines, 2),
    }


def main() -> None:
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))), flush=True)
        return
    duration = sys.argv[1] if sys.argv[1:] else "3h"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[2] if sys.argv[2:] else made)
        hours, week = folder / "hours", folder / "week"
        run_simulation(scenario(duration), base=folder, out=hours, seed=1, warn=print)
        write_week(hours, week, parse_duration(duration))
        print(json.dumps(_measured_apart(week)), flush=True)


def _measured_apart(week: Path) -> object:
    """Return what ``measure`` does, in a process of its own: the simulation took memory too."""
    command = [sys.executable, "-m", "bench.capture", "measure", str(week)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
