"""A set-up that cannot scale says so at the end of a run."""

from __future__ import annotations

import re
import shlex

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.simulate.worlds import MANIFEST, small

from kubetide.cli.main import cli
from kubetide.simulate.outcome.table import summary_table
from kubetide.simulate.run import run_simulation

BIG = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: big}
spec:
  replicas: 2
  selector: {matchLabels: {app: big}}
  template:
    metadata: {labels: {app: big}}
    spec:
      %s
      containers: [{name: main, image: big, resources: {requests: {cpu: "%s", memory: 128Mi}}}]
"""
PODS_METRIC = """
  - type: Pods
    pods: {metric: {name: nobody_has_it}, target: {type: AverageValue, averageValue: "5"}}
"""
RESOURCE = """
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
"""


def stuck(tmp_path, manifest):
    scenario = msgspec.structs.replace(small(), manifests=(manifest,))
    return run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=lambda _: None)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (
            MANIFEST.replace(RESOURCE.strip("\n"), PODS_METRIC.strip("\n")),
            ["HorizontalPodAutoscaler default/web", "FailedGetPodsMetric", "nobody_has_it", "explain hpa default/web"],
        ),
        (
            MANIFEST.replace("requests: {cpu: 200m, memory: 128Mi}", "limits: {}"),
            ["HorizontalPodAutoscaler default/web", "FailedGetResourceMetric", "missing request for cpu"],
        ),
        (
            MANIFEST + BIG % ("", "64"),
            ["ReplicaSet default/big-", "2 pods without a node for 5m0s or more", "Insufficient cpu", "larger machine type", "explain pod default/big-"],
        ),
        (
            MANIFEST + BIG % ("nodeSelector: {topology.kubernetes.io/zone: zone-x}", "100m"),
            ["ReplicaSet default/big-", "add a group like general in zone zone-x, or drop"],
        ),
        (
            (MANIFEST + BIG % ("", "100m")).replace(
                "metadata: {name: big}",
                "metadata: {name: big, ownerReferences: [{apiVersion: x/v1, kind: Shop, name: s, uid: u-1}]}",
            ),
            ["Deployment default/big: its owner Shop s (uid u-1) is not there, so it is deleted"],
        ),
    ],
    ids=["unknown metric", "no requests", "64 cores", "no such zone", "owner"],
)  # fmt: skip
def test_what_cannot_scale_is_reported(tmp_path, manifest, words):
    """The reason is in the summary, in its notices, and nothing else is accused."""
    result = stuck(tmp_path, manifest)
    [said] = result.stuck
    assert [word for word in words if word not in said] == []
    assert said in result.summary.notices
    assert said in summary_table(result.summary)


TABLE = """
---
apiVersion: autoscaling.cloud.tencent.com/v1
kind: HorizontalPodCronscaler
metadata: {name: web}
spec:
  scaleTarget: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: web}
  crons:
  - {name: morning, schedule: "0 0 8 * * 7", minSize: 2, maxSize: 4}
"""
SCALED = """
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: big}
spec:
  scaleTargetRef: {name: big}
  triggers:
  - {type: cron, metadata: {timezone: UTC, start: "0 8 * * *", end: "0 9 * * *", desiredReplicas: "2"}}
  - %s
"""
ELASTIC = """
---
apiVersion: kubetide.dev/v1alpha1
kind: ElasticWorkload
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  horizontal:
    maxReplicas: 3
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
"""


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (
            TABLE,
            ["HorizontalPodCronscaler default/web: morning ('0 0 8 * * 7')", "write 0 for Sunday", "explain schedule default/web"],
        ),
        (
            BIG % ("", "100m") + SCALED % "{type: rabbitmq, metadata: {queueName: x}}",
            ["ScaledObject default/big: ", "rabbitmq", "explain schedule default/big"],
        ),
        (
            BIG % ("", "100m") + SCALED % '{type: cpu, metricType: Utilization, metadata: {value: "much"}}',
            ["ScaledObject default/big: ", "much", "explain scaledobject default/big"],
        ),
        (
            ELASTIC,
            ["ElasticWorkload default/web: is not followed: Conflict: HorizontalPodAutoscaler web is in the way"],
        ),
    ],
    ids=["a schedule", "another trigger", "a bad trigger", "two for one target"],
)  # fmt: skip
def test_what_is_not_followed_is_reported(tmp_path, manifest, words):
    """A slip in a time table, a ScaledObject or an ElasticWorkload is found by a run, not by an event that nobody reads."""
    loops = ("elastic", "schedules", "scaledobjects", "horizontal", "nodes")
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST + manifest,), loops=loops)
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=lambda _: None)
    [said] = result.stuck
    assert [word for word in words if word not in said] == []
    assert said in result.summary.notices


def test_a_time_table_that_an_hpa_takes_back_is_named(tmp_path):
    """Both scale one Deployment, as each says: that is no failure, and still a mistake. A table of the HPA is none."""
    good = TABLE.replace("* * 7", "* * 0")
    bad = re.sub("scaleTarget: .*", "scaleTarget: {apiVersion: apps/v1, kind: Deployment, name: web}", good)
    bad = bad.replace("minSize: 2, maxSize: 4", "targetSize: 3")
    said = []
    for table in (good, bad):
        scenario = msgspec.structs.replace(
            small(), manifests=(MANIFEST + table,), loops=("schedules", "horizontal")
        )
        result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=lambda _: None)
        assert result.stuck == ()
        said.append(result.summary.notices)
    assert said[0] == ()
    assert said[1][0].startswith(
        "HorizontalPodCronscaler default/web: HorizontalPodAutoscaler default/web scales Deployment web, too, and takes back"
    )


def test_a_time_table_that_a_scaled_object_takes_back_is_named(tmp_path):
    """KEDA's object scales the Deployment by its load, so the way out is a trigger of it."""
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "big"}
    table = re.sub("scaleTarget: .*", f"scaleTarget: {workload}", TABLE.replace("* * 7", "* * 0"))
    table = table.replace("minSize: 2, maxSize: 4", "targetSize: 3")
    load = SCALED % '{type: cpu, metricType: Utilization, metadata: {value: "60"}}'
    manifest = MANIFEST + BIG % ("", "100m") + load + table
    loops = ("schedules", "scaledobjects", "horizontal")
    scenario = msgspec.structs.replace(small(), manifests=(manifest,), loops=loops)
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=lambda _: None)
    [said] = [text for text in result.summary.notices if "takes back" in text]
    assert said.startswith(
        "HorizontalPodCronscaler default/web: ScaledObject default/big scales Deployment big, too"
    )
    assert "write the times as cron triggers of that ScaledObject" in said


def test_what_scales_is_not_accused(tmp_path):
    """A run in which everything has a node and an answer says nothing."""
    result = stuck(tmp_path, MANIFEST)
    assert (result.stuck, result.summary.notices) == ((), ())


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--strict",), 3)])
def test_strict_makes_it_an_exit_status(tmp_path, options, status):
    """Without --strict the run ends well; with it, with status 3, after the summary and the files."""
    path = tmp_path / "s.yaml"
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST + BIG % ("", "64"),))
    path.write_text(yaml.safe_dump(msgspec.to_builtins(scenario)))
    run = CliRunner().invoke(cli, ["simulate", str(path), "--out", str(tmp_path / "out"), *options])
    assert run.exit_code == status
    assert "without a node" in run.output
    assert (tmp_path / "out" / "report.html").exists()


def test_the_command_that_is_offered_asks_the_folder_of_the_run(tmp_path):
    """What a person is told to ask works as it stands; the summary names no folder, so it is the same everywhere."""
    path, out = tmp_path / "s.yaml", tmp_path / "a run"
    big = "".join((BIG % ("", "64")).replace("big", f"big-{at}") for at in range(4))
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST + big,))
    path.write_text(yaml.safe_dump(msgspec.to_builtins(scenario)))
    run = CliRunner().invoke(cli, ["simulate", str(path), "--out", str(out)])
    offered = re.findall(r"\(ask: kubetide (.*)\)$", run.output, re.MULTILINE)
    page = CliRunner().invoke(cli, ["status", "--out", str(out)]).output
    offered += re.findall(r"ask: kubetide (.*)$", page, re.MULTILINE)
    assert len(offered) == 8, "four at the end, and one for each workload on the page"
    for command in offered:
        asked = CliRunner().invoke(cli, shlex.split(command))
        assert (asked.exit_code, "No group takes it." in asked.output) == (0, True)
    assert "--out" not in (out / "summary.json").read_text()


def test_of_many_hpas_that_cannot_scale_few_are_named(tmp_path):
    """A cluster whose metrics fail has no page of the same sentence."""
    failing = MANIFEST.replace("requests: {cpu: 200m, memory: 128Mi}", "limits: {}")
    many = "---\n".join(failing.replace("web", f"web-{at}") for at in range(7))
    *named, last = stuck(tmp_path, f"{MANIFEST}---\n{many}").stuck
    assert [one.split(":")[0] for one in named] == [
        f"HorizontalPodAutoscaler default/web-{at}" for at in range(5)
    ]
    assert last == "2 other HorizontalPodAutoscalers have not scaled either"
