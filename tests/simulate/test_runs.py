"""Whole runs in virtual time: same seed same bytes, replay agrees, and nothing breaks when everything fails."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.simulate.worlds import MANIFEST, small

from kubetide.simulate.answers.replay import replay
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import DailySpec, LoadSpec, ServiceSpec, load_scenario

EXAMPLES = Path(__file__).parents[2] / "examples"

RUN = """
import sys
from pathlib import Path
junk = [object() for _ in range(int(sys.argv[4]))]
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from msgspec.structs import replace
path = Path(sys.argv[1])
run_simulation(replace(load_scenario(path), duration="2h"), base=path.parent, out=Path(sys.argv[2]), seed=int(sys.argv[3]), warn=sys.exit)
"""


def records_of(folder: Path, *, seed: int, hash_seed: int, junk: int) -> str:
    """Run two hours of the bad day in a process of their own and return the digest of the records."""
    subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLES / "bad-day.yaml"), str(folder), str(seed), str(junk)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )
    digest = hashlib.sha256()
    for path in sorted((folder / "records").iterdir()):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    """Records are byte-identical under two hash seeds and two heaps; another seed gives others."""
    first = records_of(tmp_path / "a", seed=7, hash_seed=1, junk=0)
    assert records_of(tmp_path / "b", seed=7, hash_seed=2, junk=100_000) == first
    assert records_of(tmp_path / "c", seed=8, hash_seed=1, junk=0) != first


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_bad_day_breaks_no_invariant_and_replays(tmp_path, seed):
    """With stock-outs, boot failures, refused calls and expired watches nothing is harmed, and replay finds no difference.

    Rerun one with `kubetide simulate examples/bad-day.yaml --seed SEED`.
    """
    path = EXAMPLES / "bad-day.yaml"
    result = run_simulation(load_scenario(path), base=path.parent, out=tmp_path, seed=seed, warn=pytest.fail)
    assert result.violations == ()
    assert result.unsettled == ()
    titles = " ".join(mark.title for mark in result.timeline.marks)
    assert "OutOfResource.InsufficientInstanceCapacity" in titles
    assert "never registered" in titles
    replayed = replay(tmp_path)
    assert replayed.differences == ()
    assert replayed.records["nodes"] > 1000
    assert replayed.records["horizontal"] > 1000


def test_a_run_inside_a_running_event_loop(tmp_path):
    """In a notebook, where a loop is running, a run gives the same as outside of one."""

    def run(name):
        return run_simulation(
            small(duration="2m"), base=tmp_path, out=tmp_path / name, seed=1, warn=pytest.fail
        )

    async def cell():
        return run("inside")

    assert asyncio.run(cell()).timeline == run("outside").timeline


SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: main, image: db, resources: {requests: {cpu: 500m, memory: 128Mi}}}]
---
"""


@pytest.mark.slow
def test_a_service_of_a_stateful_set(tmp_path):
    """Pods that no Deployment makes get load by their labels; the HPA scales their owner, and nodes come with it."""
    hpa = MANIFEST.partition("---")[2].replace("name: web", "name: db").replace("Deployment", "StatefulSet")
    load = LoadSpec(daily=DailySpec(low=150, peak=150, noise=0))
    service = ServiceSpec(name="data", selector={"app": "db"}, cpu_seconds_per_request=0.01, load=load)
    scenario = msgspec.structs.replace(small(nodes=1), services=(service,), manifests=(SET, hpa))
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    series = result.timeline.services["data"]
    assert (series.desired[0], series.desired[-1], series.ready[-1]) == (2, 5, 5)
    assert series.desired == series.existing
    assert result.timeline.nodes["general"][-1] == 2
    assert (result.violations, replay(tmp_path).differences) == ((), ())
