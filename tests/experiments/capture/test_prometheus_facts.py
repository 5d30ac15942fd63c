"""Facts of kube-state-metrics as workloads, HPAs and machines."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from kubetide.experiments.capture.prometheus.hpas import hpas_of
from kubetide.experiments.capture.prometheus.nodes import Nodes, boots_by_orders, nodes_of
from kubetide.experiments.capture.prometheus.questions import (
    FACTS,
    NODE_LABELS,
    NODES,
    ORDERS,
    WORKLOADS,
    label_name,
    usage,
)
from kubetide.experiments.capture.prometheus.reading import Grid, Seen
from kubetide.experiments.capture.prometheus.workloads import (
    owners_of,
    shapes_of,
    tolerations_of,
    workload_object,
)
from kubetide.objects.node import Taint
from kubetide.units.time import Duration, Instant

SECOND = 1_000_000_000


def facts(**given):
    """Return facts by name, with underscores for spaces: rows that are there, or their values by row."""
    found = {name: {} for name in FACTS}
    for name, rows in given.items():
        values = rows if isinstance(rows, dict) else dict.fromkeys(rows, 1.0)
        found[name.replace("_", " ")] = {
            row: value if isinstance(value, Seen) else Seen(value, value, Instant(0))
            for row, value in values.items()
        }
    return found


def test_owners():
    """Pods belong to the Deployment of their ReplicaSet; without its owner the name decides, where a Deployment has it."""
    reported = facts(
        pod_owner=[
            ("shop", "web-5d-a", "ReplicaSet", "web-5d"),
            ("shop", "old-77-b", "ReplicaSet", "old-77"),
            ("shop", "bare-x", "ReplicaSet", "bare"),
            ("shop", "db-0", "StatefulSet", "db"),
            ("shop", "alone", "<none>", "<none>"),
        ],
        replica_set_owner=[("shop", "web-5d", "Deployment", "web"), ("shop", "bare", "<none>", "<none>")],
    )
    owners = owners_of(reported, [("shop", "old"), ("shop", "web")])
    assert owners.of == {
        ("shop", "web-5d-a"): ("Deployment", "shop", "web"),
        ("shop", "old-77-b"): ("Deployment", "shop", "old"),
        ("shop", "bare-x"): ("ReplicaSet", "shop", "bare"),
        ("shop", "db-0"): ("StatefulSet", "shop", "db"),
    }
    assert (owners.alone, owners.guessed) == ({("shop", "alone")}, 1)


def test_shapes():
    """A workload's oldest pod shows its requests; the nodes that its pods were on show what it tolerates."""
    reported = facts(
        pod_owner=[("shop", name, "StatefulSet", "db") for name in ("db-0", "db-1")],
        pod_created={("shop", "db-1"): 200.0, ("shop", "db-0"): 100.0},
        pod_node=[("shop", "db-0", "n1"), ("shop", "db-1", "n2")],
        container=[("shop", "db-0", "main", "postgres:17")],
        requests={
            ("shop", "db-0", "main", "cpu"): 0.25,
            ("shop", "db-0", "main", "memory"): 536870912.0,
            ("shop", "db-0", "main", "nvidia_com_gpu"): 1.0,
            ("shop", "db-0", "main", "example_com_unknown"): 3.0,
            ("shop", "db-1", "main", "cpu"): 0.5,
        },
        limits={("shop", "db-0", "main", "cpu"): 1.0},
    )
    owners = owners_of(reported, [])
    workload = "StatefulSet", "shop", "db"
    oldest, newest = shapes_of(reported, owners)[workload]
    [container] = oldest.containers
    assert container.image == "postgres:17"
    assert container.resources.requests == {"cpu": "250m", "memory": "512Mi", "nvidia.com/gpu": "1"}
    assert container.resources.limits == {"cpu": "1"}
    assert newest.containers[0].resources.requests == {"cpu": "500m"}

    tolerations = tolerations_of(
        reported, owners, {"n2": [Taint(key="dedicated", value="db", effect="NoSchedule")]}
    )
    made = workload_object(workload, 2, oldest, tolerations[workload])
    [toleration] = made.spec.template.spec.tolerations
    assert (toleration.key, toleration.value, toleration.effect) == ("dedicated", "db", "NoSchedule")


def test_hpas():
    """Facts of an HPA that no series has are named; an HPA without a known target is left out."""
    reported = facts(
        hpa=[("shop", name, "apps/v1", "Deployment", name) for name in ("web", "queue", "both")],
        hpa_minimum=dict.fromkeys([("shop", "web"), ("shop", "queue"), ("shop", "both")], 2.0),
        hpa_maximum={
            ("shop", "web"): Seen(8.0, 12.0, Instant(0)),
            ("shop", "queue"): 5.0,
            ("shop", "both"): 9.0,
        },
        hpa_target={
            ("shop", "web", "cpu", "utilization"): 60.0,
            ("shop", "queue", "depth", "average"): 30.0,
            ("shop", "both", "memory", "average"): 1073741824.0,
            ("shop", "both", "depth", "value"): 30.0,
        },
    )
    notes = []
    found = hpas_of(reported, notes)
    assert sorted(found) == [("shop", "both"), ("shop", "web")]
    assert (found["shop", "web"].spec.min_replicas, found["shop", "web"].spec.max_replicas) == (2, 8)
    [metric] = found["shop", "both"].spec.metrics
    assert metric.resource.target.average_value == "1Gi"
    text = "\n".join(notes)
    for said in (
        "HPA shop/web: its bounds or targets were changed",
        "HPA shop/queue: no series tells where its metrics depth come from",
        "HPA shop/queue: no series tells its CPU or memory target",
        "HPA shop/both: no series tells where its metrics depth come from",
    ):
        assert said in text


def test_groups():
    """Nodes are in the group that a platform's label names, else in that of their type, else of their size and taints."""

    def labels(**given):
        return tuple(given.get(name, "") for name in NODE_LABELS)

    pool, machine = (
        label_name("cloud.google.com/gke-nodepool"),
        label_name("node.kubernetes.io/instance-type"),
    )
    sizes = {(name, "cpu"): 4.0 for name in "abcd"} | {(name, "memory"): 16.0 * 2**30 for name in "abcd"}
    reported = facts(
        node_labels=[
            ("a", *labels(**{pool: "workers", machine: "n2-standard-4"})),
            ("b", *labels(**{machine: "n2-standard-4"})),
            ("c", *labels()),
        ],
        node_capacity=sizes,
        node_taint=[
            ("d", "dedicated", "gpu", "NoSchedule"),
            ("c", "node.kubernetes.io/not-ready", "", "NoSchedule"),
        ],
    )
    nodes = nodes_of(reported, "abcde")
    assert nodes.group == {"a": "workers", "b": "n2-standard-4", "c": "4cpu-16gi", "d": "4cpu-16gi-dedicated"}
    assert (nodes.labelled, nodes.shapeless) == (True, ["e"])


@pytest.mark.parametrize(
    ("orders", "boots"),
    [
        ([0, 0, 2, 2, 2], [70.0, 75.0]),
        ([5, 5, 7, 7, 7], [70.0, 75.0]),
        ([math.nan, math.nan, 2, 2, 2], [70.0, 75.0]),
        ([5, 5, 1, 2, 2], [70.0, 45.0]),
        ([2, 2, 2, 2, 2], []),
    ],
    ids=["a counter", "one that counted before", "one that begins", "one that begins anew", "no order"],
)
def test_boots(orders, boots):
    """Machines that were ordered are matched with nodes that came; a counter that falls has begun anew."""
    nodes = Nodes({}, {"n1": "general", "n2": "general"}, True, [])
    times = np.array([0.0, 30.0, 60.0, 90.0, 120.0])
    found = boots_by_orders(np.array(orders, float), times, {"n1": 130.0, "n2": 135.0}, nodes)
    assert found.get("general", []) == boots


def test_the_grid():
    """Answers belong to the requested time, in parts that Prometheus gives at once."""
    grid = Grid(Instant(1_000 * SECOND), Duration(15 * SECOND), 2_500)
    assert [grid.place(second) for second in (1000.0, 1015.0, 1016.0, 999.0, 1000 + 15 * 2500, math.nan)] == [
        0,
        1,
        None,
        None,
        None,
        None,
    ]
    assert list(grid.parts()) == [(0, 1000), (1000, 2000), (2000, 2500)]


def test_the_page_names_all_series():
    """docs/capture.md names all series that must be scraped."""
    page = (
        (Path(__file__).parents[3] / "docs/capture.md")
        .read_text()
        .replace("`..._", "`kube_horizontalpodautoscaler_")
    )
    asked = " ".join(
        [
            *(fact.metric for fact in FACTS.values()),
            *(text for kind in WORKLOADS.values() for text in kind),
            usage(Duration(60 * SECOND)),
            NODES,
            ORDERS,
        ]
    )
    names = set(re.findall(r"\b(?:kube|container|cluster_autoscaler)_[a-z_]+", asked))
    assert len(names) >= 20
    assert {name for name in names if name not in page} == set()
    assert " ".join(usage(Duration(60 * SECOND)).split()).replace(" ", "") in page.replace("\n", "").replace(
        " ", ""
    )
