"""Consolidation of nodes whose pods have rules: filters have the last word, and none of them ends a search."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.nodes.consolidation.fleet import Fleet, priced
from tests.nodes.consolidation.ruled_fleet import RULES, STAYS, RuledFleet, ruled_group
from tests.nodes.frozen import pod
from tests.nodes.requests import buffer, pod_template

from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.units.quantity import milli
from kubetide.units.time import hours, minutes

LARGE, SMALL = ("large", 16, 0.8), ("small", 4, 0.2)


@pytest.mark.parametrize("rule", ["apart", "port"])
def test_pods_that_keep_apart_get_a_cheaper_node_each(rule):
    """By their amounts three pods fit on one small node; as they must not, three small nodes are bought."""
    groups = [ruled_group(*LARGE), ruled_group(*SMALL)]
    made = RuledFleet(groups, {"large": [[(rule, 1000)]] * 3}).run(minutes(20), step=minutes(2))
    assert made.kinds() == {"small": 3}
    assert not made.waiting()


@pytest.mark.parametrize("rule", ["device", "shared", "admin"])
def test_devices_are_found_in_another_group(rule):
    """The cheapest group has none: nodes with devices of their own are bought."""
    devices = ruled_group("device", 4, 0.3, devices=2)
    groups = [ruled_group(*LARGE, devices=2), ruled_group(*SMALL), devices]
    made = RuledFleet(groups, {"large": [[(rule, 3000)]] * 2}).run(minutes(20), step=minutes(2))
    assert made.kinds() == {"device": 2}
    assert not made.waiting()


def test_spread_pods_stay_in_their_zones():
    """The cheapest node of all is in the wrong zone for one of the two."""
    groups = [
        ruled_group(*LARGE),
        ruled_group("other", 16, 0.8, zone="b"),
        ruled_group(*SMALL),
        ruled_group("smaller", 4, 0.21, zone="b"),
    ]
    rules = {"large": [[("spread", 3000)]], "other": [[("spread", 3000)]]}
    made = RuledFleet(groups, rules).run(minutes(20), step=minutes(2))
    assert made.kinds() == {"small": 1, "smaller": 1}


def test_of_nodes_that_may_not_all_go_some_do():
    """Two would be merged to one; as the minimum lets one of them go, that one is replaced."""
    groups = [priced("old", 4, 0.8, minimum=1), priced("new", 8, 0.2)]
    made = Fleet(groups, {"old": [[3000]] * 2}).run(minutes(4))
    assert made.kinds() == {"old": 1, "new": 1}


def test_nodes_of_one_move_keep_the_total_of_the_cluster_together():
    """Each of two nodes may go, but both would leave fewer cores than the minimum: a new node is bought for one."""
    groups = [priced("old", 8, 0.8), priced("new", 6, 0.2)]
    flags = {"cores_total": "15:320", "scale_down_utilization_threshold": 0.1}
    made = Fleet(groups, {"old": [[7900], [2900], [2900]]}, **flags).run(minutes(4))
    assert made.kinds() == {"old": 2, "new": 1}


def test_reserved_capacity_moves_without_evictions():
    """Placeholder pods of a CapacityBuffer need a place as pods do; what they cost to move is nothing."""
    flags = {"capacity_buffer_controller_enabled": True, "capacity_buffer_pod_injection_enabled": True}
    groups = [priced(*LARGE), priced(*SMALL), priced("medium", 12, 0.5)]
    made = Fleet(groups, {"large": [[2000]]}, **flags)
    spare = buffer("spare", podTemplateRef={"name": "big"}, replicas=3)
    made.gather(
        capacity=CapacityChanges(capacity_buffers=(spare,), pod_templates=(pod_template("big", cpu="3"),))
    )
    assert made.run(minutes(5)).kinds() == {"medium": 1}
    assert [one.fields["evictions"] for one in made.chosen] == [1]


def test_no_node_is_bought_where_an_empty_one_goes_for_nothing():
    """The minimum lets one of two nodes go: the empty one does, and the other is not replaced."""
    groups = [priced("old", 8, 0.8, minimum=1), priced("new", 4, 0.2)]
    made = Fleet(groups, {"old": [[], [3500]]}).run(minutes(10))
    assert made.kinds() == {"old": 1}
    assert not made.chosen


def test_no_pods_are_planned_onto_a_node_that_is_replaced():
    """The replaced node is empty in the search; what only it would take has no place."""
    groups = [priced("old", 8, 0.4, maximum=1), priced("new", 8, 0.365), priced("other", 4, 0.5)]
    tied = [pod("tied", cpu="1", node="other-0", spec={"nodeSelector": {"kind": "old"}})]
    made = Fleet(groups, {"old": [[7500]], "other": [[]]}, more=tied)
    made.minute()
    assert [one.subject for one in made.chosen] == ["old-0"]


@st.composite
def fleets(draw):
    """Up to four groups of two zones with up to three nodes each, pods of all rules, and limits."""
    groups, rules = [], {}
    for at in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["plain", "plain", "gpus", "devices"]))
        minimum, nodes = draw(st.sampled_from([0, 0, 1])), draw(st.integers(0, 3))
        one = ruled_group(
            f"g{at}",
            draw(st.sampled_from([4, 8, 16])),
            draw(st.integers(5, 100)) / 100,
            zone=draw(st.sampled_from("ab")),
            minimum=minimum,
            maximum=draw(st.sampled_from([3, 50])),
            **({kind: 2} if kind != "plain" else {}),
        )
        pods = st.tuples(st.sampled_from(RULES), st.integers(1, 20).map(lambda tenths: 100 * tenths))
        groups.append(one)
        rules[one.id] = draw(st.lists(st.lists(pods, max_size=4), min_size=max(minimum, nodes), max_size=3))
    limits = draw(
        st.sampled_from(
            [{}, {}, {"max_nodes_total": 5}, {"cores_total": "8:40"}, {"consolidation_budgets": "nodes=100%"}]
        )
    )
    return RuledFleet(groups, rules, **limits), limits


def cores_of(fleet):
    return sum(milli(node.status.capacity["cpu"]) // 1000 for node in fleet.state.nodes.values())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(fleets())
def test_no_rule_is_broken_and_no_fleet_is_moved_for_ever(drawn):
    """Random fleets: pods that must stay do, limits hold in each tick, all pods run in the end, and the bill has not grown."""
    made, limits = drawn
    most_nodes = max(limits.get("max_nodes_total", 1000), len(made.state.nodes))
    most_cores = max(40 if "cores_total" in limits else 1000, cores_of(made))
    least_cores = min(8 if "cores_total" in limits else 0, cores_of(made))
    stay = {pod.metadata.name for pod in made.state.pods.values() if made.rule_of(pod) in STAYS}
    price = made.price
    for _ in range(60):
        made.run(minutes(4), step=minutes(4))
        for group in made.groups.values():
            assert group.min_size <= group.target_size <= group.max_size
        assert len(made.state.nodes) <= most_nodes
        assert least_cores <= cores_of(made) <= most_cores
    assert not made.waiting()
    known = len(made.chosen)
    made.run(hours(8), step=minutes(30))
    assert len(made.chosen) == known
    assert made.price <= price + 1e-9
    assert not made.waiting()
    assert stay <= {pod.metadata.name for pod in made.state.pods.values()}
    # An unneeded node that a limit keeps has a soft taint for as long.
    taints = [taint for node in made.state.nodes.values() for taint in node.spec.taints or ()]
    assert not [taint.key for taint in taints if taint.effect != "PreferNoSchedule"]
    for one in made.chosen:
        bought = one.fields["why"].partition("a node of group ")[2].partition(" ")[0]
        assert bought != one.subject.split("-")[0]
