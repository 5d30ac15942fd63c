"""`kubetide explain` as a process, on the records of the reference scenario's day, half a gigabyte: CPU seconds and modules.

`python -m bench.explain 2h` plays a shorter stretch; `python -m bench.explain FOLDER` asks a folder that is there.
Modules are compiled before, as an installed package has them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from bench.simulation import scenario
from kubetide.runtime.recording.records import recorded_loops
from kubetide.simulate.answers.when import read_moment, start_of_records
from kubetide.simulate.answers.why import objects_of
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import Scenario

_ASKED = (
    ("hpa", "service-07"),
    ("hpa", "service-07", "--at", "1h"),
    ("deploy", "service-07"),
    ("nodegroup", "general"),
    ("nodegroup", "general", "--at", "1h"),
    ("node", "NODE"),
    ("node", "NODE", "--at", "1h"),
    ("pod", "POD"),
    ("pod", "POD", "--at", "1h"),
    ("vpa", "service-07"),
    ("vpa", "service-07", "--at", "1h"),
)
"""NODE and POD are replaced by one that exists all the time."""
_VPA = """
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{name: {name}}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  updatePolicy: {{updateMode: "Off"}}
"""
_COUNT = "import sys; sys.argv[1:] = {words!r}\nfrom kubetide.cli.main import main\nmain()\nprint(len(sys.modules), file=sys.stderr)"


def ask(out: Path) -> None:
    """Print one line a question: the least CPU time of four, the first of which may compile modules."""
    size = sum(path.stat().st_size for path in (out / "records").glob("*.jsonl"))
    start = read_moment("1h", start_of_records(out))
    lasting = {
        kind.upper(): min(set(objects_of(out, start)[kind]) & set(objects_of(out, None)[kind]))
        for kind in ("node", "pod")
    }
    recorded = recorded_loops(out)
    for asked in _ASKED:
        if asked[0] == "vpa" and "recommender" not in recorded:
            continue
        words = [lasting.get(word, word) for word in asked]
        command = ["explain", *words, "--out", str(out)]
        took = []
        for _ in range(4):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run = subprocess.run(
                [sys.executable, "-c", _COUNT.format(words=command)],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        line = {
            "name": f"explain {' '.join(words)}",
            "record_mib": size >> 20,
            "cpu_s": round(min(took), 3),
            "target_cpu_s": 0.3,
            "modules": int(run.stderr.split()[-1]),
        }
        print(json.dumps(line), flush=True)


def _with_vpas(plain: Scenario) -> Scenario:
    """Return the scenario with a VPA for each service, which only recommends."""
    manifests = [
        text + _VPA.format(name=f"service-{number:02d}") for number, text in enumerate(plain.manifests)
    ]
    return replace(plain, manifests=tuple(manifests), loops=("horizontal", "nodes", "recommender"))


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "24h"
    if Path(given).is_dir():
        ask(Path(given))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run_simulation(
            _with_vpas(scenario(folder, given)), base=folder, out=folder / "out", seed=1, warn=print
        )
        ask(folder / "out")


if __name__ == "__main__":
    main()
