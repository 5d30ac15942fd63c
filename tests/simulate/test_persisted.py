from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kubetide.cli.main import cli
from kubetide.embedded.apiserver.store import Store
from kubetide.embedded.apiserver.store.journal import Journal
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.persisted import PersistedRun
from kubetide.simulate.scenarios.spec import ScenarioError
from kubetide.units.time import format_rfc3339, parse_rfc3339

SCENARIO = """
name: shrinking
start: 2026-03-02T00:00:00Z
duration: 2h
warmUp: 2m
nodeGroups:
- {name: pool, instanceType: m5.large, min: 2, max: 5, initial: 5, bootTime: 60s}
flags:
  scale-down-unneeded-time: 1m
  scale-down-delay-after-add: 1m
  scale-down-delay-after-delete: 0s
  max-scale-down-parallelism: 1
manifests:
- |
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    replicas: 5
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers:
        - {name: web, image: "web:1", resources: {requests: {cpu: 300m, memory: 64Mi}}}
  ---
  apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: db, namespace: shop}
  spec:
    replicas: 2
    serviceName: db
    selector: {matchLabels: {app: db}}
    template:
      metadata: {labels: {app: db}}
      spec:
        containers:
        - {name: db, image: "db:1", resources: {requests: {cpu: 100m, memory: 64Mi}}}
"""
TAINT = b"ToBeDeletedByClusterAutoscaler"
COMMAND = "from kubetide.cli.main import main; main()"


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    (folder / "scenario.yaml").write_text(SCENARIO)
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            COMMAND,
            "up",
            str(folder / "scenario.yaml"),
            "--state",
            str(folder / "state"),
            "--out",
            str(folder / "out"),
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def log_of(folder: Path) -> bytes:
    found = b""
    for path in (folder / "state").glob("state-*.jsonl"):
        with contextlib.suppress(FileNotFoundError):
            found += path.read_bytes()
    return found


def objects_of(folder: Path) -> tuple[dict, dict]:
    """All persisted objects, by resource and name, and the machines."""
    journal = Journal.open(folder / "state")
    restored = journal.restored
    journal.close()
    found: dict = {}
    for resource, key, json in restored.objects:
        found.setdefault(resource, {})[key[1]] = json
    return found, restored.parts["machines"]["groups"]["pool"]


@pytest.mark.slow
def test_killed_in_the_middle_of_a_scale_down_it_goes_on(tmp_path):
    """kill -9 while a node is drained, and a start again: nothing is lost, no taint stays, no group falls below its minimum."""
    first = start(tmp_path, "--speed", "30")
    deadline = time.monotonic() + 300
    while TAINT not in log_of(tmp_path):
        assert first.poll() is None, first.communicate()[0].decode()
        assert time.monotonic() < deadline, "no node was drained"
        time.sleep(0.005)
    first.kill()
    first.communicate()

    before, _ = objects_of(tmp_path)
    tainted = [name for name, node in before["nodes"].items() if TAINT.decode() in str(node["spec"])]
    assert tainted, "killed too late to be in the middle"

    second = start(tmp_path, "--speed", "3000", "--until", "30m")
    output = second.communicate(timeout=300)[0].decode()
    assert second.returncode == 0, output

    after, pool = objects_of(tmp_path)
    for resource in ("deployments.apps", "statefulsets.apps", "replicasets.apps", "namespaces"):
        assert {name: json["metadata"]["uid"] for name, json in after[resource].items()} == {
            name: json["metadata"]["uid"] for name, json in before[resource].items()
        }
    assert not any(TAINT.decode() in str(node["spec"]) for node in after["nodes"].values())
    assert len(after["nodes"]) == len(pool["machines"]) == 2
    assert {machine["state"] for machine in pool["machines"]} == {"Running"}
    pods = [pod for pod in after["pods"].values() if "deletionTimestamp" not in pod["metadata"]]
    assert len(pods) == 7
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert all(pod["spec"]["nodeName"] in after["nodes"] for pod in pods)
    uids = [json["metadata"]["uid"] for by_name in after.values() for json in by_name.values()]
    assert len(uids) == len(set(uids))


def test_a_folder_belongs_to_one_scenario_and_a_run_that_goes_on(tmp_path):
    """Another scenario, or an end that has passed, is refused with the fix."""
    noon = parse_rfc3339("2026-03-02T12:00:00Z")
    journal = Journal.open(tmp_path)
    journal.attach(Store(), lambda: noon)
    journal.keep("run", {"scenario": "shop"})
    journal.close()
    with pytest.raises(ScenarioError, match="holds scenario shop, not bank; use another folder"):
        PersistedRun(tmp_path, "bank", noon)
    with pytest.raises(ScenarioError, match="the stored run is at 2026-03-02T12:00:00Z, and its end is"):
        PersistedRun(tmp_path, "shop", noon)
    with PersistedRun(tmp_path, "shop", parse_rfc3339("2026-03-02T13:00:00Z")) as persisted:
        assert not persisted.is_new
        assert format_rfc3339(persisted.resumes_at) == "2026-03-02T12:00:00Z"


def test_a_start_that_was_interrupted_at_once_is_begun_anew(tmp_path):
    """State that was written before the cluster was complete is dropped."""
    journal = Journal.open(tmp_path)
    journal.keep("machines", {"spent": 0.0, "groups": {}})
    journal.close()
    with PersistedRun(tmp_path, "shop", parse_rfc3339("2026-03-02T13:00:00Z")) as persisted:
        assert persisted.is_new
        assert persisted.machines is None


def test_nodes_that_are_there_when_a_run_resumes_were_not_bought(tmp_path):
    """A run that goes on from its state counts the nodes that come from then on, and so does one without a warm-up."""
    scenario = tmp_path / "scenario.yaml"
    fixed = SCENARIO.replace("min: 2, max: 5, initial: 5", "min: 5, max: 5").replace(
        "warmUp: 2m", "warmUp: 0s"
    )
    scenario.write_text(fixed)
    for until in ("5m", "10m"):
        played = [
            "up",
            str(scenario),
            "--until",
            until,
            "--speed",
            "100000",
            "--state",
            str(tmp_path / "state"),
        ]
        result = CliRunner().invoke(cli, [*played, "--out", str(tmp_path / "out")])
        assert result.exit_code == 0, result.output
        summary = msgspec.json.decode((tmp_path / "out" / "summary.json").read_bytes(), type=Summary)
        assert (summary.groups[0].nodes_max, summary.nodes_added) == (5, 0)


def test_a_run_that_has_ended_is_not_played_on(tmp_path):
    """The same command again says that the run has ended; it replays no step of it."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    command = ["up", str(scenario), "--until", "3m", "--speed", "100000", "--no-ui"]
    command += ["--state", str(tmp_path / "state"), "--out", str(tmp_path / "out")]
    first, second = (CliRunner().invoke(cli, command) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert "give a later --until" in str(second.exception)
