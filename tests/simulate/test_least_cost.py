"""A run with ``--expander=least-cost``: several groups in one tick, the bound in the records, and the same at replay."""

from __future__ import annotations

import pytest

from kubetide.nodes.reasons import VOCABULARY
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.answers.why import explain_object
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario

DEPLOYMENT = """
  - |
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
              image: example/{name}
              resources: {{requests: {{cpu: "{cpu}", memory: {memory}}}}}
"""

SCENARIO = """
name: two-kinds-of-pods
start: 2026-03-02T00:00:00Z
duration: 20m
flags: {expander: least-cost, scale-down-enabled: "false"}
nodeGroups:
  - {name: system, instanceType: m5.large, min: 1, max: 1}
  - {name: balanced, instanceType: m5.xlarge, max: 10, pricePerHour: 0.192}
  - {name: memory, instanceType: lean, max: 10}
  - {name: compute, instanceType: quick, max: 10}
instanceTypes:
  lean: {cpu: 2, memory: 16Gi, pricePerHour: 0.126}
  quick: {cpu: 4, memory: 8Gi, pricePerHour: 0.170}
manifests:"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("least-cost")
    pods = [("cache", 4, "500m", "13Gi"), ("codec", 4, "3", "3Gi")]
    text = "".join(
        DEPLOYMENT.format(name=name, replicas=replicas, cpu=cpu, memory=memory)
        for name, replicas, cpu, memory in pods
    )
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO + text)
    result = run_simulation(load_scenario(path), base=folder, out=folder / "out", seed=1, warn=pytest.fail)
    assert result.violations == ()
    return folder / "out"


def test_each_kind_of_pods_gets_the_nodes_made_for_it(run):
    """Four nodes of memory and four of cpu are bought in one tick; none of the more expensive group."""
    bought = [
        [(reason.subject, reason.fields["to"]) for reason in record.reasons if reason.code == "Increased"]
        for record in read_records(run, "nodes")
    ]
    assert [one for one in bought if one] == [[("compute", 4), ("memory", 4)]]


def test_the_record_and_the_explanation_have_the_bound(run):
    """The choice is recorded with its bound, which `explain` shows of the group."""
    reported = [
        VOCABULARY.text(reason)
        for record in read_records(run, "nodes")
        for reason in record.reasons
        if reason.code == "ChosenTogether"
    ]
    assert len(reported) == 2
    assert reported[0].startswith(
        "it is part of 8 nodes of 2 groups for 1.1840 an hour; the same pods cost at least 1.1"
    )
    text = explain_object(run, "nodegroup", "memory", namespace="", at=None)
    assert reported[0] in text


def test_each_node_says_what_it_says_to_a_pod(run):
    """Every node is reported, those that take the pod first, the others with what would help."""
    first = next(iter(read_records(run, "nodes")))
    assert first.full
    name = next(
        word.split('"')[0]
        for word in str(bytes(first.state)).split('"name":"')
        if word.startswith("cache-") and word.count("-") > 1
    )
    text = explain_object(run, "pod", name, namespace="default", at=None, view="nodes")
    assert "It is on node memory-" in text
    assert "1 of 9 nodes would take it as they are" in text
    assert "verified by asking the filters again" in text


def test_the_run_replays_byte_by_byte(run):
    """The solver gives the same answer again."""
    assert replay(run).differences == ()
