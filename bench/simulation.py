"""A virtual day of the reference scenario: 100 nodes, about 3,000 pods, 50 HPAs, 20,000 pod starts and more.

Prints CPU seconds and peak memory of the whole process, and the ratio to a floor: the same number of
status patches written to a plain dict. `python -m bench.simulation 2h` runs a shorter stretch.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import tempfile
import time
from pathlib import Path

from kubetide.runtime.recording.records import recorded_loops
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import LoadSpec, NodeGroupSpec, PodTimes, Scenario, ServiceSpec
from kubetide.units.patch import merge_patch
from kubetide.units.time import parse_duration

SERVICES = 50
WAVES_A_DAY = 24
PHASES = 0.7
"""Part of an hour over which the services' waves are spread: the rest is what nodes follow."""
POD_RPS = 20.0
LOW_PODS, HIGH_PODS = 46, 74

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
        - name: main
          image: {name}
          resources: {{requests: {{cpu: 250m, memory: 512Mi}}, limits: {{cpu: 500m}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  minReplicas: 5
  maxReplicas: 120
  metrics:
    - type: Resource
      resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 60}}}}
"""


def write_trace(path: Path, service: int, hours: int) -> None:
    """An hourly wave, its phase by service, in requests/s a minute."""
    phase = PHASES * service / SERVICES
    with path.open("w") as file:
        for minute in range(hours * 60):
            wave = (1 - math.cos(2 * math.pi * (minute / 1440 * WAVES_A_DAY + phase))) / 2
            pods = LOW_PODS + (HIGH_PODS - LOW_PODS) * wave
            file.write(f"{pods * POD_RPS * 0.6:.3f}\n")


def scenario(folder: Path, duration: str) -> Scenario:
    """The reference scenario, its traces written into the folder."""
    hours = math.ceil(parse_duration(duration) / 3.6e12)
    services, manifests = [], []
    for number in range(SERVICES):
        name = f"service-{number:02d}"
        write_trace(folder / f"{name}.csv", number, hours)
        services.append(
            ServiceSpec(
                deployment=name,
                cpu_seconds_per_request=0.25 / POD_RPS,
                load=LoadSpec(trace=f"{name}.csv", step="1m"),
            )
        )
        wave = (1 - math.cos(2 * math.pi * PHASES * number / SERVICES)) / 2
        manifests.append(MANIFEST.format(name=name, replicas=round(LOW_PODS + (HIGH_PODS - LOW_PODS) * wave)))
    return Scenario(
        name="reference",
        duration=duration,
        node_groups=(
            NodeGroupSpec(name="general", instance_type="m5.2xlarge", min=10, max=130, initial=100),
            NodeGroupSpec(name="large", instance_type="m5.4xlarge", min=0, max=20),
        ),
        pods=PodTimes(),
        manifests=tuple(manifests),
        services=tuple(services),
    )


def floor_per_patch() -> float:
    """CPU seconds of one status patch on a plain dict."""
    base = {"metadata": {"name": "x"}, "status": {"currentReplicas": 1, "conditions": [{"type": "A"}] * 3}}
    begin = time.process_time()
    for number in range(20_000):
        merge_patch(base, {"status": {"currentReplicas": number}})
    return (time.process_time() - begin) / 20_000


def main() -> None:
    duration = sys.argv[1] if len(sys.argv) > 1 else "24h"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        built = scenario(folder, duration)
        begin = time.process_time()
        result = run_simulation(built, base=folder, out=folder / "out", seed=1, warn=print)
        cpu = time.process_time() - begin
        line = result.timeline
        record_bytes = sum(path.stat().st_size for path in (folder / "out" / "records").iterdir())
        print(
            json.dumps(
                {
                    "name": f"virtual {duration} of the reference scenario",
                    "cpu_s": round(cpu, 2),
                    "target_cpu_s": 80 if duration == "24h" else None,
                    "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                    "target_mib": 1024,
                    "pod_starts": result.summary.pod_starts,
                    "pods_mean": round(
                        sum(sum(s.existing) for s in line.services.values()) / len(line.pending)
                    ),
                    "nodes_max": max(sum(counts) for counts in zip(*line.nodes.values(), strict=True)),
                    "record_mib": round(record_bytes / 1024 / 1024),
                    "loops": recorded_loops(folder / "out"),
                    "violations": len(result.violations),
                    "ratio_to_plain_dict_patches": round(
                        cpu / (SERVICES * len(line.pending) * floor_per_patch()), 2
                    ),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
