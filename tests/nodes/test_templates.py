"""Templates of groups: labels, tags, zones, DaemonSet pods, expiry, and what the cloud says that is odd."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, World, daemon_set, group, node, pod, pods, template
from tests.nodes.learning import C5D, CATALOGUE, DEVICE, TYPE, of_type, sizes_with, template_for

from kubetide.nodes.explain.answers import explain_node, explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.facts.nodes import TEMPLATE_LABEL
from kubetide.nodes.templates.build import all_templates
from kubetide.nodes.templates.sizes import node_sizes
from kubetide.objects.capacity import CapacityQuota
from kubetide.objects.kinds import CAPACITY_QUOTAS
from kubetide.objects.workload import DaemonSet
from kubetide.plan.board import NodeSize
from kubetide.ports.cloud import Offering
from kubetide.units.time import after, minutes, seconds

OTHERS = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": "rack"}
SPREAD = {**OTHERS, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def test_a_group_at_zero_is_similar_to_one_with_nodes():
    """The cloud's template gets the deprecated labels that kubelets set, and every template the label of templates."""
    zone, old = {"topology.kubernetes.io/zone": "z1"}, {"failure-domain.beta.kubernetes.io/zone": "z1"}
    types = {TYPE: "m5.xlarge", "beta.kubernetes.io/instance-type": "m5.xlarge"}
    full = pod("full", cpu="4", node="a-1")
    world = World(
        nodes=[node("a-1", labels={**zone, **old, **types})],
        pods=[full, *pods("p", 3, cpu="3", spec={"nodeSelector": old})],
        groups=[
            group("a", made=template(labels={**zone, TYPE: "m5.xlarge"}), nodes=("a-1",)),
            group("b", made=template(labels={**zone, TYPE: "m5.xlarge"})),
        ],
        settings={"balance_similar_node_groups": True},
    )
    assert world.increases() == {"a": 1, "b": 2}
    for name in "ab":
        labels = template_for(world, name).node.metadata.labels
        assert labels[TEMPLATE_LABEL] == "true"


@pytest.mark.parametrize(("provider", "bought"), [("aws", {"g": 1}), ("gce", {})])
def test_on_aws_tags_name_what_live_nodes_lack(provider, bought):
    """A device that the group's tags name counts, though no node has shown it."""
    tagged = template(status=sizes_with(**{DEVICE: "1"}))
    asked = {"requests": {"cpu": "1", DEVICE: "1"}, "limits": {DEVICE: "1"}}
    spec = {"containers": [{"name": "main", "image": "x", "resources": asked}]}
    world = World(
        nodes=[node("n1")],
        pods=[pod("p", spec=spec)],
        groups=[group("g", made=tagged, nodes=("n1",))],
        settings={"provider": provider},
    )
    assert world.increases() == bought


def test_a_tag_that_cordons_nodes_is_left_out_of_the_template():
    """The taint of a cordoned node says how the node is, not what a new one will be."""
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    world = World(pods=[pod("p")], groups=[group("g", made=template(spec={"taints": [taint]}))])
    assert world.increases() == {"g": 1}


ZONE = "topology.kubernetes.io/zone"
OVER_ZONES = (Offering(instance_type="c5d.large", zone="z1"), Offering(instance_type="c5d.large", zone="z2"))
IN_Z1 = template(cpu="2", memory="16Gi", labels={**C5D, ZONE: "z1"})


@pytest.mark.parametrize(
    ("zones", "settings", "bought"),
    [
        (("z1",), {"group_must_fit_in_every_zone": True}, {}),
        (("z1", "z2"), {"group_must_fit_in_every_zone": True}, {"g": 1}),
        (("z1",), {}, {"g": 1}),
    ],
)
def test_a_group_over_zones_takes_pods_that_may_run_in_each(zones, settings, bought):
    """For a pod bound to one zone, a group whose next node may be in another zone is not scaled up."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    bound = pod("p", cpu="1", spec={"affinity": {"nodeAffinity": required}})
    world = World(pods=[bound], groups=[group("g", made=IN_Z1, offerings=OVER_ZONES)], settings=settings)
    verdict = explain_pod(world.state, ("default", "p"), world.now).groups[0]
    assert world.increases() == bought
    if not bought:
        assert "the group's next node may be one of z2" in verdict.why


def test_what_is_odd_about_a_group_is_said_once():
    """Malformed tags and a spread over zones are one event and two lines of explain; a new notice is another event."""
    world = World(groups=[group("g", made=IN_Z1, offerings=OVER_ZONES, warnings=("tag x: no number",))])
    world.tick()
    assert world.messages("NodeGroupNotice") == [
        (
            "Node group g: tag x: no number; the cloud decides about its next node, which is in one of the zones z1, z2; "
            "a group for each is predictable"
        )
    ]
    assert len(explain_group(world.state, "g", world.now).notices) == 2
    world.tick(at=seconds(10), nodes=(of_type("y"),))
    assert world.messages("NodeGroupNotice") == []
    world.change("g", warnings=("tag x: no number", "tag y: no number"))
    world.tick(at=seconds(20))
    assert world.messages("NodeGroupNotice") == ["Node group g: tag y: no number"]


def test_no_node_of_a_group_with_a_stale_view_is_removed():
    """While the cloud's view of a group is stale its empty nodes stay, and explain says why."""
    nodes = [of_type("a-1"), of_type("a-2")]
    world = World(
        nodes=nodes,
        groups=[group("a", nodes=("a-1", "a-2"), stale="throttled")],
        settings={"scale_down_delay_after_add": 0},
    )
    for at in (0, 11, 22):
        world.tick(at=minutes(at))
        assert world.state.memory.scale_down.unneeded == {}
    said = explain_node(world.state, "a-1", world.now)
    assert (said.reason, "throttled" in said.sentence) == ("NodeGroupStale", True)
    world.change("a", stale="")
    world.tick(at=minutes(33))
    assert sorted(world.state.memory.scale_down.unneeded) == ["a-1", "a-2"]


def test_what_new_nodes_have_left_is_reported_by_size():
    """Pods of DaemonSets are taken off; each size is reported once, and that of a group with a maximum of 0 not at all."""
    groups = [
        group("a", made=CATALOGUE),
        group("b", made=CATALOGUE),
        group("c", made=template(cpu="8", memory="32Gi")),
        group("none", made=template(cpu="64", memory="256Gi"), maximum=0),
    ]
    world = World(groups=groups, daemon_sets=(daemon_set("agent", cpu="300m", memory="1Gi"),))
    world.tick()
    assert node_sizes(world.state) == (NodeSize(1700, 3 << 30), NodeSize(7700, 31 << 30))


QUOTA = msgspec.convert(
    {"metadata": {"name": "small"}, "spec": {"limits": {"resources": {"cpu": "4"}}}}, CapacityQuota
)


@pytest.mark.parametrize(
    ("limits", "quotas"),
    [
        ({"cores_total": "0:4"}, ()),
        ({"memory_total": "0:16"}, ()),
        ({"capacity_quotas_enabled": True}, (QUOTA,)),
    ],
    ids=["cores", "memory", "quota"],
)
def test_nodes_that_no_limit_of_the_cluster_allows_are_of_no_size(limits, quotas):
    """A group whose first node would pass a limit never has one; where it has some, their size counts."""
    small, large = group("a", made=CATALOGUE), group("b", made=template(cpu="8", memory="32Gi"))
    world = World(groups=[small, large], settings=limits)
    world.tick()
    for quota in quotas:
        world.state.capacity.put(quota, CAPACITY_QUOTAS)
    assert node_sizes(world.state) == (NodeSize(2000, 4 << 30),)
    world.state.groups["b"] = replace(world.state.groups["b"], target_size=1)
    assert NodeSize(8000, 32 << 30) in node_sizes(world.state)


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [OTHERS]}}}, True),
        ({"topologySpreadConstraints": [SPREAD]}, True),
        ({"nodeSelector": {"gpu": "yes"}}, False),
        ({"nodeName": "n1"}, False),
        ({"tolerations": []}, False),
    ],
)
def test_the_rules_of_daemon_sets_say_which_pods_a_new_node_has(spec, runs):
    """The template's labels, taints and name decide, as in the DaemonSet controller; rules of the scheduler alone do not."""
    taints = [{"key": "only", "value": "some", "effect": "NoSchedule"}]
    body = msgspec.to_builtins(daemon_set("agent", cpu="300m"))
    body["spec"]["template"]["spec"] |= {"tolerations": [{"operator": "Exists"}]} | spec
    agent = msgspec.convert(body, DaemonSet)
    world = World(groups=[group("g", made=template(spec={"taints": taints}))], daemon_sets=(agent,))
    world.tick()
    assert [one.metadata.name for one in all_templates(world.state)["g"].pods] == ["agent-pod"] * runs


def emptied(*, made=CATALOGUE, pods=(), **objects):
    """Return a world in which the only node of group g has gone; the cloud's template is ``made`` since then."""
    world = World(
        nodes=[node("g-1", cpu="2", labels=C5D)],
        pods=pods,
        groups=[group("g", made=CATALOGUE, nodes=("g-1",))],
        **objects,
    )
    world.tick()
    gone = [(one.metadata.namespace, one.metadata.name) for one in pods]
    world.tick(at=minutes(5), gone_nodes=("g-1",), deleted_pods=gone)
    world.change("g", instances=(), target_size=0, template=made)
    return world


LARGER = template(cpu="16", memory="64Gi", labels={TYPE: "c5d.4xlarge"}, source="catalogue: c5d.4xlarge")


@pytest.mark.parametrize(
    ("by_type", "offers", "bought", "source"),
    [
        (True, (), {"g": 1}, "cloud: catalogue: c5d.4xlarge"),
        (True, ("c5d.large", "c5d.4xlarge"), {}, "seen earlier on node g-1, last at 2026-03-02T08:00:00Z"),
        (False, (), {}, "seen earlier on node g-1, last at 2026-03-02T08:00:00Z"),
    ],
)
def test_a_group_at_zero_that_gets_other_machines_is_looked_at_anew(by_type, offers, bought, source):
    """Its last node says nothing of another instance type, unless the group has several, or follows upstream."""
    world = emptied(made=LARGER, settings={"templates_by_instance_type": by_type})
    offerings = tuple(Offering(instance_type=kind) for kind in offers)
    world.change("g", offerings=offerings or None)
    assert world.increases(at=minutes(6), pods=(pod("p", cpu="8"),)) == bought
    assert explain_group(world.state, "g", world.now).template.startswith(source)


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        ({"cpu": "20"}, "lower cpu request from 20 to <= 16"),
        (
            {"cpu": "8", "spec": {"nodeSelector": {"disk": "ssd"}}},
            "add label disk=ssd to the nodes of group g",
        ),
    ],
)
def test_what_would_help_is_tried_on_the_machine_that_comes_next(asked, change):
    """The smallest change for a pod that waits is found with the machines to come, not with the group's last node."""
    world = emptied(made=LARGER)
    assert world.increases(at=minutes(6), pods=(pod("p", **asked),)) == {}
    way_out = explain_pod(world.state, ("default", "p"), world.now).way_out
    assert way_out.verified
    assert [one.what for one in way_out.changes] == [change]


def test_a_group_at_zero_follows_its_daemon_sets():
    """One that is new takes its part of the next node, and one that is gone leaves its own free."""
    world = emptied()
    agent, large = daemon_set("agent", cpu="500m"), pod("p", cpu="1800m")
    assert world.increases(at=minutes(6), daemon_sets=(agent,), pods=(large,)) == {}
    its_pod = pod("agent-g", cpu="500m", node="g-1", of="agent", kind="DaemonSet")
    world = emptied(pods=[its_pod], daemon_sets=(agent,))
    assert world.increases(at=minutes(6), pods=(large,)) == {}
    world = emptied(pods=[its_pod])
    assert world.increases(at=minutes(6), pods=(large,)) == {"g": 1}


def test_a_seen_template_expires_by_the_last_tick_with_its_node():
    """--node-info-cache-expire-time counts from the last tick in which there was a good node; until then nothing expires."""
    there = group("g", made=CATALOGUE, nodes=("n0",))
    world = World(nodes=[node("n0")], groups=[there], settings={"node_info_cache_expire_time": minutes(1)})
    # Nodes are looked at where a pod has changed; the last tick is quiet.
    for at, placed in ((0, ()), (90, (pod("p", node="n0"),)), (100, ())):
        world.tick(at=seconds(at), pods=placed)
        assert world.state.memory.templates["g"].live
    world.change("g", instances=(), target_size=0)
    world.tick(at=seconds(110), gone_nodes=["n0"])
    assert world.state.memory.templates["g"].seen_at == after(START, seconds(100))
    world.tick(at=seconds(160), pods=(pod("a", cpu="64"),))
    assert "g" in world.state.memory.templates
    world.tick(at=seconds(161), pods=(pod("b", cpu="64"),))
    assert "g" not in world.state.memory.templates
