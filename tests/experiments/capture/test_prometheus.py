"""`kubetide capture --prometheus-url`: a run as a real Prometheus reports it, and beside its records."""

from __future__ import annotations

import subprocess

import msgspec
import pytest
import yaml
from tests.cluster.prometheus_server import find_prometheus, running_prometheus
from tests.experiments.capture.open_metrics import open_metrics
from tests.experiments.capture.test_command import invoke, played, world

from kubetide.simulate.scenarios.spec import InstanceTypeSpec

PROMETHEUS = find_prometheus()
PROMTOOL = None if PROMETHEUS is None else PROMETHEUS.parent / "promtool"

pytestmark = pytest.mark.skipif(
    PROMTOOL is None or not PROMTOOL.exists(), reason="not there: prometheus and promtool"
)

UNTIL = ("--since", "2026-03-02T00:00:00Z", "--until", "2026-03-02T00:39:45Z")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Its machines are what the catalogue says: what a catalogue says wrong is in no series."""
    scenario = msgspec.structs.replace(
        world(max_nodes=8),
        instance_types={"tiny": InstanceTypeSpec(cpu=1, memory="2Gi", price_per_hour=0.5)},
    )
    return played(scenario, tmp_path_factory.mktemp("run"))


def serving(folder, text):
    """Return the context of a Prometheus that has these samples."""
    (folder / "samples.txt").write_text(text)
    subprocess.run(
        [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", folder / "samples.txt", folder / "data"],
        check=True,
        capture_output=True,
    )
    # Samples that are written afterwards have no marks of where a series ends.
    return running_prometheus(folder, more_flags=("--query.lookback-delta=20s",))


@pytest.fixture(scope="module")
def server(run, tmp_path_factory):
    """A Prometheus that received everything twice."""
    with serving(tmp_path_factory.mktemp("prometheus"), open_metrics(run, twice=True)) as prometheus:
        yield prometheus


def card_of(output):
    """Return by name which part of the steps is near, in percent."""
    rows = [line.rsplit(maxsplit=5) for line in output.splitlines() if line.count("%") == 2]
    return {row[0].strip(): float(row[4][:-1]) for row in rows}


def scenario_of(folder):
    """Return the captured scenario, and its manifests by kind and name."""
    value = yaml.safe_load((folder / "scenario.yaml").read_text())
    manifests = map(yaml.safe_load, value["manifests"])
    return value, {f"{one['kind']}/{one['metadata']['name']}": one["spec"] for one in manifests}


def test_without_records(server, tmp_path):
    """Workloads, HPA, load, groups and boot times come from Prometheus alone, and the card shows how near they come.

    Two scrapers with the same series do not double anything.
    """
    flags = ("--set=scale-down-unneeded-time=2m", "--set=scale-down-delay-after-add=2m")
    result = invoke("--prometheus-url", server.url, *UNTIL, *flags, "--out", tmp_path, "--seed", 5)
    assert result.exit_code == 0, result.output
    assert card_of(result.output)["replicas of default/web"] >= 95
    assert card_of(result.output)["nodes"] >= 85

    value, manifests = scenario_of(tmp_path)
    assert sorted(manifests) == ["Deployment/aside", "Deployment/web", "HorizontalPodAutoscaler/web"]
    [container] = manifests["Deployment/web"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "400m", "memory": "128Mi"}}
    hpa = manifests["HorizontalPodAutoscaler/web"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (2, 8)
    assert hpa["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
    [group] = value["nodeGroups"]
    assert (group["min"], group["max"], group["initial"]) == (2, 4, 2)
    low, high = (int(part[:-1]) for part in group["bootTime"].split("-"))
    assert 60 <= low <= high <= 110
    text = " ".join(result.output.split())
    for said in (
        "no series tells the flags of the loops",
        "its bounds are the fewest and the most nodes that it had, 2 and 4",
        "CPU usage is the mean over 1m0s; its samples are 15s apart",
        "a node took no longer than its oldest pod had waited",
    ):
        assert said in text


def test_before_the_records(run, server, tmp_path):
    """Prometheus covers the time before the records, which describe their own time better."""
    later = tmp_path / "later"
    from_the_next_whole_state(run, later)
    given = ("--prometheus-url", server.url, *UNTIL[:2], "--out", tmp_path / "out", "--seed", 5)
    result = invoke(later, *given)
    assert result.exit_code == 0, result.output
    assert card_of(result.output)["replicas of default/web"] >= 95
    value, manifests = scenario_of(tmp_path / "out")
    assert (value["start"], value["duration"]) == ("2026-03-02T00:00:00Z", "39m45s")
    assert value["flags"]["scale-down-unneeded-time"] == "2m0s"
    [group] = value["nodeGroups"]
    assert (group["name"], group["max"], group["initial"]) == ("general", 8, 2)
    assert manifests["Deployment/web"]["replicas"] == 2
    assert "PodDisruptionBudget/web" in manifests
    whole = tmp_path / "whole"
    invoke(run, "--out", whole, "--no-score")
    ours, theirs = (read_trace(folder) for folder in (tmp_path / "out", whole))
    assert len(ours) == len(theirs)
    near = [abs(a - b) <= 0.15 * b for a, b in zip(ours, theirs, strict=True)]
    assert sum(near) >= 0.85 * len(near)


def from_the_next_whole_state(run, folder):
    """Write records that begin a quarter of an hour later, as those of a process that was started then and killed."""
    (folder / "records").mkdir(parents=True)
    for path in (run / "records").glob("*.jsonl"):
        header, _, *lines, _ = path.read_bytes().splitlines(keepends=True)
        whole = next(place for place, line in enumerate(lines) if b'"full":true' in line)
        (folder / "records" / path.name).write_bytes(header + b"".join(lines[whole:]))


def read_trace(folder):
    return [float(line) for line in (folder / "default-web.csv").read_text().splitlines()]


def test_a_hole(run, tmp_path):
    """A time that nothing was scraped in is named, and what was there before holds."""
    reported = open_metrics(run, everything=(600, 900))
    (tmp_path / "prometheus").mkdir()
    with serving(tmp_path / "prometheus", reported) as prometheus:
        result = invoke("--prometheus-url", prometheus.url, *UNTIL, "--out", tmp_path / "out", "--no-score")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "nothing of kube-state-metrics from 2026-03-02T00:10:15Z to 2026-03-02T00:14:45Z" in text
    assert "of 159 steps have no sample" in text


def test_without_cadvisor(run, tmp_path):
    """Workloads without usage have no load, and the reason is given."""
    reported = open_metrics(run, container_cpu_usage_seconds_total=(0, 1e9))
    (tmp_path / "prometheus").mkdir()
    with serving(tmp_path / "prometheus", reported) as prometheus:
        result = invoke("--prometheus-url", prometheus.url, *UNTIL, "--out", tmp_path / "out", "--no-score")
    assert "no container_cpu_usage_seconds_total: no workload has a load" in " ".join(result.output.split())
    assert not list((tmp_path / "out").glob("*.csv"))


def test_without_the_capacity_of_nodes(run, tmp_path):
    """Machines without known capacity are no node groups."""
    reported = open_metrics(run, kube_node_status_capacity=(0, 1e9))
    (tmp_path / "prometheus").mkdir()
    with serving(tmp_path / "prometheus", reported) as prometheus:
        result = invoke("--prometheus-url", prometheus.url, *UNTIL, "--out", tmp_path / "out")
    assert "no kube_node_status_capacity of any node" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--since", "2020-03-02T00:00:00Z", "--until", "2020-03-02T01:00:00Z"),
            "has no kube_node_created from 2020",
        ),
        (("--since", "soon"), "--since soon: neither a time"),
        (("--since", "10s", "--step", "1m"), "there is not one step of 1m0s"),
        (("--step", "-1s"), "--step -1s: not a duration above 0"),
        (("--prometheus-url", "prometheus:9090"), '"prometheus:9090" is no URL'),
        (("--prometheus-user", "me"), "prometheus-user and prometheus-password-file"),
    ],
    ids=["no series", "no time", "too short", "no step", "no URL", "no password"],
)
def test_what_cannot_be_asked(server, tmp_path, arguments, said):
    """Each mistake is named, and nothing is written."""
    result = invoke("--prometheus-url", server.url, *arguments, "--out", tmp_path / "out")
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_prometheus_that_is_not_there(tmp_path):
    """The address, the time and the question are named."""
    result = invoke("--prometheus-url", "http://127.0.0.1:1", "--out", tmp_path / "out")
    assert "Prometheus at http://127.0.0.1:1 does not answer for " in str(result.exception)
    assert "container_cpu_usage_seconds_total" in str(result.exception)
