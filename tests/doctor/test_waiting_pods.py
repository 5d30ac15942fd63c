"""What the doctor says of pods that wait and of groups that cannot grow."""

from __future__ import annotations

from tests.doctor.findings import found
from tests.nodes.frozen import START, group, node, pod, template

from kubetide.doctor import Snapshot
from kubetide.nodes.explain.equivalent_pods import explain_equivalent_pods


def test_a_pod_that_no_group_can_hold():
    """The finding has each group's refusal and, as the fix, the smallest change that was decided again."""
    big = [pod(f"big-{at}", memory="64Gi", of="big") for at in range(3)]
    (one,) = found("no-group", pods=tuple(big), groups=(group("g"),))
    assert one.object == "Pod default/big-0 (and 2 like it)"
    assert "g: Insufficient memory" in one.seen
    assert one.fix == "lower memory request from 64Gi to <= 16Gi (group g)"
    assert found("no-group", pods=(pod("small"),), groups=(group("g"),)) == []


def test_pods_that_wait_for_machines_on_their_way_are_no_finding():
    """A node that was bought for a pod and has not joined takes it: a larger maximum would buy one more for nothing."""
    groups = (group("g", maximum=2, nodes=["n1"], target=2),)
    objects = {"nodes": (node("n1"),), "groups": groups}
    pods = tuple(pod(name, cpu="3", of=name) for name in ("a", "b", "c"))
    body = {"nodeName": "n1"}
    full = pod("there", cpu="3", of="db", spec=body)
    assert found("no-group", pods=(pods[0], full), **objects) == []
    assert {one.object for one in found("no-group", pods=(*pods, full), **objects)} == {
        "Pod default/b",
        "Pod default/c",
    }


def test_the_maximum_that_is_named_is_enough_for_all_like_pods():
    """Of three pods of one workload the fix counts all, not only the first."""
    body = {"nodeName": "n1"}
    pods = [pod(name, cpu="3") for name in ("a", "b", "c")] + [pod("z", of="db", cpu="3", spec=body)]
    groups = (group("g", maximum=1, nodes=["n1"]),)
    objects = {"pods": tuple(pods), "nodes": (node("n1"),), "groups": groups}
    (one,) = found("no-group", **objects)
    assert (one.object, one.fix) == (
        "Pod default/a (and 2 like it)",
        "raise max of group g from 1 to 4",
    )
    state = Snapshot(now=START, **objects).node_state
    for keys in ([("default", name) for name in "cba"], [("default", "c")]):
        assert explain_equivalent_pods(state, keys, START).sentence == (
            "No group takes it. What would help: raise max of group g from 1 to 4."
        )


def test_workloads_that_were_not_asked_about_are_counted():
    """Beyond the first twenty workloads the doctor says how many it left out."""
    pods = tuple(pod(f"p{at:02}", cpu="64", of=f"w{at:02}") for at in range(22))
    reported = found("no-group", pods=pods, groups=(group("g"),))
    assert len([one for one in reported if one.severity == "critical"]) == 20
    assert [one.seen for one in reported if one.severity == "info"] == [
        "2 workloads have pods that wait and were not asked about: only those of the first 20 are"
    ]


def test_a_group_at_its_maximum_counts_the_pods_that_nodes_are_bought_for():
    """An expendable pod waits for free capacity, so it makes no maximum too low."""
    full = (group("g", nodes=["n1"], maximum=1),)
    expendable = pod("low", spec={"priority": -20})
    (one,) = found("group-maximum", groups=full, pods=(expendable,))
    assert (one.severity, one.seen) == ("info", "it has 1 node, its maximum of 1")
    (one,) = found("group-maximum", groups=full, pods=(expendable, pod("a")))
    assert one.seen == "it has 1 node, its maximum of 1, while 1 pod waits for a node of some group"
    assert one.fix.startswith("if its nodes would take these pods, ")


def test_a_node_of_a_group_at_its_minimum_costs_nothing():
    """A pod that blocks the last node of the minimum costs nothing; one of a node more costs its price."""
    blocking = pod("naked", kind="", node="n1")

    def cost(minimum):
        groups = (group("g", minimum=minimum, nodes=["n1"], price_per_hour=0.5),)
        (one,) = found("scale-down-blockers", groups=groups, nodes=(node("n1"),), pods=(blocking,))
        return one.cost_per_hour

    assert (cost(1), cost(0)) == (None, 0.5)


def test_of_many_groups_few_are_listed_and_the_one_that_helps_comes_first():
    """A cluster of many groups has no page of refusals: the group of the fix first, few names, few reasons."""
    groups = (*(group(f"g{at}", maximum=0) for at in range(1, 8)), group("z", maximum=0, price_per_hour=0.1))
    (one,) = found("no-group", pods=(pod("a"),), groups=groups)
    assert one.fix == "raise max of group z from 0 to 1"
    assert one.seen == "no node group would take it: z, g1, g2 and 5 more groups: max node group size reached"
    sizes = tuple(group(f"g{at}", made=template(cpu=str(at))) for at in range(1, 8))
    (one,) = found("no-group", pods=(pod("a", cpu="9"),), groups=sizes)
    assert one.seen.count("Insufficient cpu") == 5
    assert one.seen.endswith("; and 2 more groups")
