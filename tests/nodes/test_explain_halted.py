"""What is said while the loop buys or removes nothing at all, and of pods for which it never buys a node."""

from __future__ import annotations

from tests.nodes.frozen import START, World, group, node, pod

from kubetide.nodes.explain.answers import explain_node, explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.units.time import after, minutes

HALT = (
    "2 of 4 nodes are not ready, more than --ok-total-unready-count=1 and --max-total-unready-percentage=45 allow: nothing "
    "is bought or removed until fewer are."
)


def test_an_unhealthy_cluster_is_the_first_thing_that_is_said():
    """A change that would help the pod does not help while too many nodes are not ready."""
    nodes = [node("n1"), node("n2"), node("n3", ready=False), node("n4", ready=False)]
    world = World(
        nodes=nodes,
        pods=[pod("a", cpu="3", memory="64Gi")],
        groups=[group("g", nodes=["n1", "n2", "n3", "n4"])],
        settings={"ok_total_unready_count": 1},
    )
    world.tick()
    assert world.increases() == {}
    assert explain_pod(world.state, ("default", "a"), world.now).sentence.startswith(
        f"{HALT} No group takes it"
    )
    assert explain_node(world.state, "n1", world.now).sentence.startswith(f"{HALT} ")
    assert explain_group(world.state, "g", world.now).obstacles[0] == HALT.rstrip(".")
    assert OVERVIEW.tables(world, world.now)[0].sentence.startswith(HALT)
    world.tick(at=minutes(1), nodes=(node("n3"),))
    now = after(START, minutes(1))
    assert explain_pod(world.state, ("default", "a"), now).sentence.startswith("No group takes it")


def test_a_pod_of_a_daemon_set_names_its_node_and_what_that_lacks():
    """Also where the cluster may have no more nodes: for such a pod no node is bought anyway."""
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    agent = pod("agent", cpu="3", kind="DaemonSet", of="agent", spec={"affinity": affinity})
    world = World(
        nodes=[node("n1")],
        pods=[agent, pod("busy", node="n1", cpu="2")],
        groups=[group("g", nodes=["n1"])],
        settings={"max_nodes_total": 1},
    )
    world.tick()
    assert explain_pod(world.state, ("default", "agent"), world.now).sentence == (
        "It belongs to a DaemonSet, so no node is bought for it: it waits for capacity on node n1, which does not take it: "
        "Insufficient cpu (cpu: 3 requested, 2 free of 4 allocatable)."
    )
