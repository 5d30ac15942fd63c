"""`kubetide capture` as a person calls it: a run, captured from its records and simulated again."""

from __future__ import annotations

import json

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.simulate.worlds import MANIFEST, small

from kubetide.api.runs import read_run
from kubetide.cli.main import cli
from kubetide.experiments.capture.observed import bytes_of, seen_in
from kubetide.experiments.capture.score import scores
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.spec import (
    BurstSpec,
    DailySpec,
    FaultSpec,
    InstanceTypeSpec,
    LoadSpec,
    NodeGroupSpec,
)

SECRETIVE = MANIFEST.replace(
    "        image: web\n",
    "        image: web\n        command: [web, --token=hush]\n        env: [{name: TOKEN, value: hush}]\n",
)
ASIDE = """apiVersion: apps/v1
kind: Deployment
metadata: {name: aside}
spec:
  replicas: 1
  selector: {matchLabels: {app: aside}}
  template:
    metadata: {labels: {app: aside}}
    spec:
      containers:
      - {name: main, image: aside, resources: {requests: {cpu: 100m, memory: 64Mi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec:
  containers:
  - {name: main, image: alone, resources: {requests: {cpu: 10m, memory: 16Mi}}}
"""


def world(*, target=60, limit="", duration="40m", max_nodes=4):
    """A burst that needs pods and nodes, on machines of a type whose catalogue is wrong."""
    burst = BurstSpec(at="00:10", height=4.0, rise="2m", hold="10m", fall="2m")
    load = LoadSpec(daily=DailySpec(low=40, peak=40, burst=burst))
    base = small(duration=duration)
    manifest = SECRETIVE.replace("averageUtilization: 60", f"averageUtilization: {target}").replace(
        "requests: {cpu: 200m, memory: 128Mi}", "requests: {cpu: 400m, memory: 128Mi}" + limit
    )
    return msgspec.structs.replace(
        base,
        services=(msgspec.structs.replace(base.services[0], load=load),),
        instance_types={
            "tiny": InstanceTypeSpec(cpu=1, memory="1Gi", actual_memory="2Gi", price_per_hour=0.5)
        },
        node_groups=(
            NodeGroupSpec(
                name="general", instance_type="tiny", min=1, max=max_nodes, initial=2, labels={"tier": "web"}
            ),
        ),
        manifests=(manifest, ASIDE),
        flags={"scale-down-unneeded-time": "2m", "scale-down-delay-after-add": "2m"},
    )


def played(scenario, folder, seed=1):
    result = run_simulation(scenario, base=folder, out=folder, seed=seed, warn=lambda _: None)
    (folder / "timeline.json").write_bytes(msgspec.json.encode(result.timeline))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(cli, ["capture", *map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return played(world(max_nodes=8), tmp_path_factory.mktemp("run"))


def test_a_run_comes_back(run, tmp_path):
    """A simulated run, captured from its records and simulated on another seed, comes near to what happened."""
    result = invoke(run, "--out", tmp_path, "--seed", 5)
    assert result.exit_code == 0, result.output
    card = {
        line.split()[0]: [float(part[:-1]) for part in line.split() if part.endswith("%")]
        for line in result.output.splitlines()
        if line.startswith(("replicas of default/web", "nodes "))
    }
    assert card["replicas"][1] >= 95
    assert card["nodes"][1] >= 90

    both = CliRunner().invoke(
        cli,
        [
            "what-if",
            str(tmp_path / "scenario.yaml"),
            "--set",
            "hpa/web.target=50",
            "--out",
            str(tmp_path / "w"),
        ],
    )
    assert "captured; simulated as it was: replicas of default/web " in both.output

    scenario = yaml.safe_load((tmp_path / "scenario.yaml").read_text())
    assert scenario["duration"] == "39m45s"
    assert scenario["flags"]["scale-down-unneeded-time"] == "2m0s"
    [group] = scenario["nodeGroups"]
    assert (group["min"], group["max"], group["initial"], group["labels"]) == (1, 8, 2, {"tier": "web"})
    low, high = (int(part[:-1]) for part in group["bootTime"].split("-"))
    assert 60 <= low <= high <= 90
    assert scenario["instanceTypes"]["tiny"] | {"cpu": "1"} == {
        "cpu": "1",
        "memory": "1Gi",
        "actualMemory": "2Gi",
        "pods": 110,
        "reservedCpu": "100m",
        "reservedMemory": "512Mi",
        "pricePerHour": 0.5,
    }
    kinds = sorted(
        (one["kind"], one["metadata"]["name"]) for one in map(yaml.safe_load, scenario["manifests"])
    )
    assert kinds == [
        ("Deployment", "aside"),
        ("Deployment", "web"),
        ("HorizontalPodAutoscaler", "web"),
        ("Pod", "alone"),
        ("PodDisruptionBudget", "web"),
    ]


def test_no_secret_is_captured(run, tmp_path):
    """Environment variables and commands stay behind."""
    assert invoke(run, "--out", tmp_path, "--no-score").exit_code == 0
    assert "hush" not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_the_load_is_the_offered_load(run, tmp_path):
    """The trace is the load of the run, also while pods come: those that are new do not raise it.

    In a step in which the ready pods could not serve all that was asked, it is a lower bound.
    """
    invoke(run, "--out", tmp_path, "--no-score")
    loads = [float(line) for line in (tmp_path / "default-web.csv").read_text().splitlines()]
    web = read_run(run).timeline.services["web"]
    offered = web.offered[: len(loads)]
    assert len(loads) == 159
    assert max(web.ready) > min(web.ready)
    served = [min(asked, capacity) for asked, capacity in zip(offered, web.capacity, strict=False)]
    assert all(load <= 1.05 * asked for load, asked in zip(loads, offered, strict=True))
    near = [load == pytest.approx(done, rel=0.05) for load, done in zip(loads, served, strict=True)]
    assert sum(near) >= 0.98 * len(near)


def test_what_limits_cut_off_is_a_lower_bound(tmp_path):
    """Usage at the limit is named: the demand may have been higher."""
    scenario = world(limit=", limits: {cpu: 100m}", duration="15m")
    # A request may not be above its limit.
    manifests = tuple(
        text.replace("requests: {cpu: 400m", "requests: {cpu: 100m") for text in scenario.manifests
    )
    folder = played(msgspec.structs.replace(scenario, manifests=manifests), tmp_path / "run")
    result = invoke(folder, "--out", tmp_path / "out", "--no-score")
    assert "used all of their limit of 100m: its load is a lower bound there." in " ".join(
        result.output.split()
    )


def test_the_score_shows_another_policy(run, tmp_path):
    """A run under another target is farther away: the card can fail."""
    other = played(world(target=25, max_nodes=8), tmp_path)
    recorded, simulated = map(seen_in, (run, other))
    same = {one.name: one.near / one.steps for one in scores(recorded, recorded)}
    assert same == {"replicas of default/web": 1.0, "nodes": 1.0}
    assert {one.name: one.near / one.steps for one in scores(recorded, simulated)}[
        "replicas of default/web"
    ] < 0.7


def test_without_records_of_nodes(run, tmp_path):
    """The error names the records of the node loop when they are missing."""
    records = tmp_path / "records"
    records.mkdir()
    for path in (run / "records").glob("horizontal-*.jsonl"):
        (records / path.name).write_bytes(path.read_bytes())
    result = invoke(tmp_path, "--out", tmp_path / "out")
    assert "has no records of the node loop" in str(result.exception)


def test_an_empty_name_is_refused_before_anything_is_written(run, tmp_path):
    """No scenario is left that no command can read."""
    result = invoke(run, "--name", " ", "--out", tmp_path / "out")
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "--name is empty" in result.output


@pytest.mark.parametrize("option", ["--since=2h", "--until=2026-03-02T00:10:00Z", "--prometheus-user=ann"])
def test_options_of_prometheus_without_one_are_refused(run, tmp_path, option):
    """Records are captured whole: a scenario of another time than was asked for would be a surprise."""
    result = invoke(run, option, "--out", tmp_path / "out")
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert f"{option.partition('=')[0]} goes with --prometheus-url" in result.output


def test_an_hpa_whose_target_is_gone_is_left_out(tmp_path):
    """Clusters have such HPAs; the scenario can be played without them, and the command names them."""
    base = small(duration="5m")
    stale = MANIFEST.partition("---\n")[2].replace("metadata: {name: web}", "metadata: {name: stale}")
    stale = stale.replace("kind: Deployment, name: web", "kind: Deployment, name: gone")
    played(msgspec.structs.replace(base, manifests=(MANIFEST, stale)), tmp_path)
    result = invoke(tmp_path, "--out", tmp_path / "out", "--no-score")
    assert result.exit_code == 0, result.exception
    assert (
        "- HPA default/stale is left out: its target, Deployment gone, is not in the scenario."
        in result.output
    )
    scenario = (tmp_path / "out" / "scenario.yaml").read_text()
    assert "name: stale" not in scenario
    assert "kind: HorizontalPodAutoscaler" in scenario


def test_records_that_were_cut(run, tmp_path):
    """Records that end within a line are captured to where they are whole."""
    records = tmp_path / "records"
    records.mkdir()
    for path in (run / "records").glob("*.jsonl"):
        content = path.read_bytes()
        (records / path.name).write_bytes(content[: len(content) * 2 // 3])
    result = invoke(tmp_path, "--out", tmp_path / "out", "--no-score")
    assert result.exit_code == 0, result.output
    scenario = yaml.safe_load((tmp_path / "out" / "scenario.yaml").read_text())
    assert json.dumps(scenario["duration"]) != '"39m45s"'


def test_machines_that_never_came_are_told_and_make_no_boot_time_longer(tmp_path):
    """A new node is not matched with the order of a machine that never joined; how often that was is said."""
    faults = (FaultSpec(kind="boot-failure", group="general", start="9m", end="13m"),)
    flags = {**world().flags, "max-node-provision-time": "4m"}
    scenario = msgspec.structs.replace(world(max_nodes=8), faults=faults, flags=flags)
    played(scenario, tmp_path / "run")
    result = invoke(tmp_path / "run", "--out", tmp_path / "shop", "--no-score")
    assert "never registered and is deleted" in result.output
    assert "; the scenario's cloud always has them, unless you add faults." in result.output
    [group] = yaml.safe_load((tmp_path / "shop" / "scenario.yaml").read_text())["nodeGroups"]
    low, high = (int(part[:-1]) for part in group["bootTime"].split("-"))
    assert 60 <= low <= high <= 90


def test_reading_says_how_far_it_is(run):
    """The bytes that were reported are those of the records that a capture reads, but for the heads of their files."""
    read = []
    seen_in(run, progress=read.append)
    assert 0.95 * bytes_of(run) < sum(read) <= bytes_of(run)
