"""Scale-up for pods with inter-pod rules: anti-affinity, affinity and spreading decide how many nodes are bought."""

from __future__ import annotations

from tests.nodes.frozen import World, group, node, pods, template

from kubetide.units.time import seconds

APP = {"matchLabels": {"app": "web"}}
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def apart(key=HOSTNAME):
    term = {"labelSelector": APP, "topologyKey": key}
    return {
        "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    }


def near(app, key=ZONE):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}}


def spread(key):
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP}
    return {"spec": {"topologySpreadConstraints": [rule]}}


def test_pods_with_anti_affinity_get_a_node_each():
    """Three small pods that exclude each other by hostname need three nodes, and none once these are on their way."""
    world = World(pods=pods("a", 3, **apart()), groups=[group("g")])
    assert world.increases() == {"g": 3}
    assert world.increases(at=seconds(10)) == {}


def test_existing_nodes_with_such_a_pod_do_not_count():
    """A node that has one of the pods takes no other, however much free capacity it has."""
    there = node("n1")
    placed = pods("old", 1, node="n1", **apart())
    world = World(nodes=[there], pods=[*placed, *pods("a", 1, **apart())], groups=[group("g", nodes=("n1",))])
    assert world.increases() == {"g": 1}


def test_a_group_in_another_zone_is_of_no_use_to_pods_that_must_be_near():
    """Only the group in the zone of the other pods can help; the other group says why it cannot."""
    domain_counts = pods("db", 1, of="db", node="n1", cpu="3900m")
    groups = [
        group("far", made=template(labels={ZONE: "b"})),
        group("near", made=template(labels={ZONE: "a"}), nodes=("n1",)),
    ]
    world = World(
        nodes=[node("n1", labels={ZONE: "a"})],
        pods=[*domain_counts, *pods("a", 2, **near("db"))],
        groups=groups,
    )
    assert world.increases() == {"near": 1}


def test_spreading_over_zones_is_bought_in_the_zone_that_lacks_pods():
    """With a pod in one of two zones, the next can only go to the other, where a node is bought."""
    nodes = [node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}, cpu="100m")]
    placed = [*pods("old", 1, node="n1", **spread(ZONE)), *pods("full", 1, of="x", node="n2")]
    groups = [
        group("a", made=template(labels={ZONE: "a"}), nodes=("n1",)),
        group("b", made=template(labels={ZONE: "b"}), nodes=("n2",)),
    ]
    world = World(nodes=nodes, pods=[*placed, *pods("a", 1, **spread(ZONE))], groups=groups)
    assert world.increases() == {"b": 1}
