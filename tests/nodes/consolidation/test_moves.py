"""Nodes that are replaced by cheaper ones or merged: the decisions, and their end."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes import frozen
from tests.nodes.consolidation.fleet import Fleet, priced
from tests.nodes.frozen import pod

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.memory import Memory
from kubetide.nodes.state import Gone
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.units.time import hours, minutes

LARGE, SMALL = ("large", 16, 0.8), ("small", 4, 0.2)
CHEAP = ("cheap", 4, 0.1)
"""Cheaper for the same capacity."""


def fleet(*groups, places, **more):
    return Fleet([priced(*one) for one in groups], places, **more)


def test_a_node_is_replaced_by_a_cheaper_one():
    """One pod of two cores does not need sixteen: a small node comes, and then the large one goes."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]})
    made.minute()
    assert made.kinds() == {"large": 1, "small": 1}
    [why] = made.chosen
    assert why.subject == "large-0"
    assert why.fields["saving"] == "0.6000"
    reported = explain_node(made.state, "large-0", made.now).consolidated
    assert reported == "a node of group small replaces it: saves 0.6 an hour for 1 eviction"
    assert [event.reason for event in made.events if event.kind == "Node"] == ["DisruptionLaunching"]
    made.run(minutes(3))
    assert made.kinds() == {"small": 1}
    assert made.run(hours(12)).kinds() == {"small": 1}
    assert len(made.chosen) == 1


def test_nodes_are_merged_into_one_cheaper():
    """Four small nodes of three cores each become one large node that costs less than they do."""
    made = fleet(("large", 16, 0.6), SMALL, places={"small": [[3000]] * 4})
    made.run(minutes(6))
    assert made.kinds() == {"large": 1}


def test_a_full_node_whose_pods_fit_elsewhere_goes_without_a_new_one():
    """Scale-down leaves it alone, as it is above the utilization threshold."""
    made = fleet(SMALL, places={"small": [[2500], [900]]}, scale_down_utilization_threshold=0.1)
    made.run(minutes(3))
    assert made.kinds() == {"small": 1}


def test_a_fleet_at_rest_is_moved_once_its_stay_makes_it_worth_it():
    """Nothing happens for the better part of an hour; then the node has been there for long enough."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]}, consolidation_eviction_price=1.5)
    assert made.run(minutes(30)).kinds() == {"large": 1}
    assert made.run(minutes(30)).kinds() == {"small": 1}


def test_without_the_flag_nothing_is_moved():
    """The default is upstream's."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]}, consolidation_enabled=False)
    assert made.run(hours(1)).kinds() == {"large": 1}


@pytest.mark.parametrize(
    "settings",
    [
        {"consolidation_eviction_price": 3.0},
        {"consolidation_expected_stay": minutes(1)},
        {"consolidation_budgets": "nodes=0"},
        {"scale_down_delay_after_add": hours(5)},
        {"scale_down_enabled": False},
        {"max_nodes_total": 1},
        {"cores_total": "16:320"},
    ],
)
def test_what_is_not_worth_it_or_not_allowed_is_left(settings):
    """The price of an eviction, the stay, budgets, young nodes, and the limits of the cluster."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]}, **settings)
    assert made.run(minutes(20)).kinds() == {"large": 1}


def test_a_group_stays_at_its_minimum():
    """As with every removal."""
    groups = [priced(*LARGE, minimum=1), priced(*SMALL)]
    assert Fleet(groups, {"large": [[2000]]}).run(minutes(20)).kinds() == {"large": 1}


@pytest.mark.parametrize("limit", [{"maximum": 1}, {"cores_total": "0:65"}, {"max_nodes_total": 4}])
def test_the_moves_of_one_search_share_a_limit(limit):
    """Three large nodes would each be replaced; where the limit leaves one new node, one is bought."""
    small = priced("small", 9, 0.3, **{name: to for name, to in limit.items() if name == "maximum"})
    others = {name: to for name, to in limit.items() if name != "maximum"}
    made = Fleet([priced(*LARGE), small], {"large": [[8500]] * 3}, **others)
    made.minute()
    assert made.kinds() == {"large": 3, "small": 1}


def test_an_empty_node_takes_the_pods_in_place_of_a_new_one():
    """Nothing is bought beside an empty node of the same group, and the empty one is not removed while pods move there."""
    made = Fleet([priced(*LARGE), priced("small", 9, 0.3)], {"large": [[8500]], "small": [[]]})
    counts = [made.run(minutes(1)).kinds() for _ in range(4)]
    assert counts == [{"large": 1, "small": 1}, *[{"small": 1}] * 3]
    assert [pod for pod in made.state.pods.values() if not pod.spec.node_name] == []


def test_an_empty_node_stays_where_the_pods_of_this_tick_go():
    """The place that the search had found is taken by now: the pods go to the node that would have been removed as idle."""
    flags = {"consolidation_budgets": "nodes=100%", "scale_down_utilization_threshold": 0.1}
    made = fleet(SMALL, places={"small": [[2500], [900], []]}, **flags)
    made.run(minutes(1))
    assert [one.subject for one in made.chosen] == ["small-0"]
    made.apply(pods=(pod("late", cpu="1500m", node="small-1"),))
    made.run(minutes(3))
    assert made.kinds() == {"small": 2}
    assert [one for one in made.state.pods.values() if not one.spec.node_name] == []


@pytest.mark.parametrize("joined", [True, False])
def test_a_new_process_buys_no_second_node_for_the_same_move(joined):
    """The node that the earlier one bought has joined, or is on its way: its pods go there."""
    made = Late([priced(*LARGE), priced("small", 9, 0.3)], {"large": [[8500]]})
    made.run(minutes(1))
    if joined:
        made.join()
    made.state.memory = Memory(started=made.now)
    made.run(minutes(2))
    if not joined:
        made.join()
    assert made.kinds().get("small") == 1
    assert made.run(minutes(20)).kinds() == {"small": 1}


@pytest.mark.parametrize("is_new", [True, False], ids=["a new process", "calm for hours"])
def test_no_node_is_bought_for_pods_of_an_overpriced_node_that_fit_on_a_cheap_one(is_new):
    """Also not right after a start, as when the process before ended in the middle of the move to the cheap node."""
    flags = {"scale_down_utilization_threshold": 0.1}
    made = fleet(("dear", 4, 0.4), CHEAP, places={"dear": [[1500]], "cheap": [[1500]]}, **flags)
    if is_new:
        made.state.memory = Memory(started=made.now)
    counts = [made.run(minutes(1)).kinds() for _ in range(3)]
    assert counts == [{"dear": 1, "cheap": 1}, *[{"cheap": 1}] * 2]


class Late(Fleet):
    """Nodes join when ``join`` is called."""

    def _join(self, action):
        self.late = action

    def join(self):
        super()._join(self.late)


def test_moves_that_end_together_share_the_free_capacity():
    """Of three new nodes one has come: one old node is drained, and the others wait for theirs."""
    made = OneAtATime(
        [priced(*LARGE), priced("small", 9, 0.3)],
        {"large": [[8500]] * 3},
        consolidation_budgets="nodes=100%",
        max_drain_parallelism=10,
    )
    made.run(minutes(3))
    assert made.kinds() == {"large": 2, "small": 3}
    assert [pod for pod in made.state.pods.values() if not pod.spec.node_name] == []


class OneAtATime(Fleet):
    """Of the nodes that are bought together the first one comes."""

    def _join(self, action):
        super()._join(replace(action, delta=1))


def test_a_hold_holds():
    """Nothing goes while caches are too old."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]})
    made.state.holds = ("pods are too old",)
    made.tick(holds=("pods are too old",))
    assert made.kinds() == {"large": 1}


def test_a_new_node_that_is_refused_leaves_the_old_one():
    """The group is backed off, and the next best is taken later."""
    made = fleet(LARGE, SMALL, ("medium", 8, 0.4), places={"large": [[2000]]})
    made.refused["small"] = "no capacity"
    made.minute()
    assert made.kinds() == {"large": 1}
    assert any(one.code == "ConsolidationGivenUp" for one in made.reasons)
    made.run(minutes(5))
    assert made.kinds() == {"medium": 1}


def test_pods_that_came_while_the_new_node_booted_are_evicted_in_turn():
    """The budget allows one eviction at a time: that is no reason to pay for both nodes for half an hour."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]})
    made.gather(pdbs=(budget(1),))
    made.minute()
    assert made.kinds() == {"large": 1, "small": 1}
    made.apply(pods=(pod("late", cpu="500m", node="large-0"),))
    assert made.run(minutes(3)).kinds() == {"small": 1}


def test_a_budget_that_allows_nothing_for_a_moment_ends_no_move():
    """While a pod of the budget starts somewhere, none may be evicted; the new node is there, and waits."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]})
    made.gather(pdbs=(budget(1),))
    made.minute()
    made.gather(pdbs=(budget(0),))
    assert made.run(minutes(2)).kinds() == {"large": 1, "small": 1}
    reported = explain_node(made.state, "large-0", made.now).consolidated
    assert reported.endswith("it waits: a PodDisruptionBudget allows no eviction now")
    made.gather(pdbs=(budget(1),))
    assert made.run(minutes(2)).kinds() == {"small": 1}


def test_a_budget_that_allows_nothing_for_long_ends_a_move():
    """After half an hour the old node is left alone, and the new one is not needed."""
    made = fleet(LARGE, SMALL, places={"large": [[2000]]})
    made.gather(pdbs=(budget(1),))
    made.minute()
    made.gather(pdbs=(budget(0),))
    made.run(minutes(32))
    assert [one.subject for one in made.reasons if one.code == "ConsolidationGivenUp"] == ["large-0"]


def budget(allowed):
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {}}, "status": status}
    return msgspec.convert(body, PodDisruptionBudget)


def test_jobs_are_waited_for():
    """A pod that may not be evicted ends by itself: no new ones come to its node, and then the node goes."""
    made = fleet(
        LARGE, CHEAP, places={"large": [[2000]]}, more=[job("job", "large-0", minutes_ago=5, now=None)]
    )
    made.run(minutes(3))
    assert made.kinds() == {"large": 1, "cheap": 1}
    assert [taint.key for taint in made.state.nodes["large-0"].spec.taints] == ["kubetide.dev/consolidation"]
    reported = explain_node(made.state, "large-0", made.now).consolidated
    assert "waits for 1 pods that end by themselves" in reported
    made.apply(gone=Gone(pods=(("default", "job"),)))
    made.run(minutes(3))
    assert made.kinds() == {"cheap": 1}


def job(name, node, *, minutes_ago, now):
    from tests.nodes.frozen import START, pod

    from kubetide.units.time import before, format_rfc3339

    created = format_rfc3339(before(now or START, minutes(minutes_ago)))
    note = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    return pod(
        name,
        node=node,
        kind="",
        created=created,
        metadata={"annotations": note},
        spec={"restartPolicy": "Never"},
    )


def test_a_job_that_does_not_end_blocks_its_node():
    """When it has been there for half of the node's life the move is given up, and the taint goes."""
    made = fleet(
        LARGE, CHEAP, places={"large": [[2000]]}, more=[job("job", "large-0", minutes_ago=50, now=None)]
    )
    made.run(minutes(3))
    assert "large" in made.kinds()
    made.run(minutes(40))
    assert "large" in made.kinds()
    assert not made.state.nodes["large-0"].spec.taints
    assert any(one.code == "ConsolidationGivenUp" for one in made.reasons)


def test_equal_machines_are_not_exchanged():
    """A group of the same machines at the same price in another zone is no reason to move."""
    made = fleet(("a", 4, 0.2), ("b", 4, 0.2), places={"a": [[3500], [3500]]})
    made.run(hours(8), step=minutes(10))
    assert made.kinds() == {"a": 2}
    assert made.chosen == []


kinds = st.tuples(st.sampled_from([2, 4, 8, 16]), st.integers(5, 100))
sizes = st.lists(st.integers(1, 20).map(lambda tenths: tenths * 100), min_size=0, max_size=6)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(kinds, min_size=1, max_size=4), st.data())
def test_no_fleet_is_moved_for_ever(some, data):
    """Random fleets whose pods stay: no node is replaced by its equal, the fleet ends cheaper, and then all is quiet."""
    groups = [priced(f"g{at}", cpu, cents / 100) for at, (cpu, cents) in enumerate(some)]
    places = {}
    for group, (cpu, _) in zip(groups, some, strict=True):
        on = data.draw(st.lists(sizes, max_size=4))
        places[group.id] = [used for used in on if used and sum(used) <= cpu * 1000]
    made = Fleet(groups, places)
    before = made.price
    made.run(hours(4), step=minutes(4))
    known = len(made.chosen)
    price = made.price
    assert price <= before + 1e-9
    made.run(hours(8), step=minutes(30))
    assert len(made.chosen) == known
    assert made.price == price
    assert not [pod for pod in made.state.pods.values() if not pod.spec.node_name]
    for one in made.chosen:
        own = one.subject.split("-")[0]
        bought = one.fields["why"].partition("a node of group ")[2].partition(" ")[0]
        assert bought != own
        if bought:
            new, old = made.groups[bought], made.groups[own]
            same = new.template.node.status.capacity == old.template.node.status.capacity
            assert not same or new.price_per_hour < old.price_per_hour


def test_an_expensive_machine_is_filled_last():
    """At the same use an expensive machine gets the most soft taints, and a cheap one none."""
    groups = [priced("dear", 4, 2.0), priced("plain", 4, 0.2)]
    made = Fleet(
        groups,
        {"dear": [[3900]], "plain": [[3900]]},
        consolidation_enabled=False,
        steer_pods_to_fuller_nodes=True,
    )
    made.minute()
    taints = {name: len(node.spec.taints or ()) for name, node in made.state.nodes.items()}
    assert taints == {"dear-0": 3, "plain-0": 0}


def zone(name, cpu, price, *, allocatable=None):
    labels = {"topology.kubernetes.io/zone": name, "kind": "small"}
    more = {"status": {"allocatable": {"cpu": allocatable or str(cpu)}}}
    made = frozen.template(cpu=str(cpu), memory="64Gi", labels=labels, **more)
    return frozen.group(f"zone-{name}", made=made, maximum=50, price_per_hour=price)


@pytest.mark.parametrize(
    ("balances", "bought"), [(True, {"zone-a": 2, "zone-b": 2, "zone-c": 2}), (False, {"zone-a": 6})]
)
def test_new_nodes_are_spread_over_similar_groups(balances, bought):
    """Groups of one machine and price in several zones grow alike where the flag says so; else the first by name does."""
    made = Fleet(
        [priced("dear", 4, 0.8), *(zone(name, 4, 0.2) for name in "cba")],
        {"dear": [[3000]] * 6},
        balance_similar_node_groups=balances,
        consolidation_budgets="nodes=100%",
    )
    made.run(hours(1))
    assert made.kinds() == bought


BALANCED = {
    "balance_similar_node_groups": True,
    "balancing_ignore_label": ("kind",),
    "provider": "aws",
}


def test_an_empty_node_is_used_before_a_similar_group_grows():
    """Balancing buys no node in the smaller group while one of the larger group is empty."""
    made = Fleet(
        [priced(*LARGE), zone("a", 9, 0.3), zone("b", 9, 0.3)],
        {"large": [[8500]], "zone-a": [[]]},
        **BALANCED,
    )
    counts = [made.run(minutes(1)).kinds() for _ in range(4)]
    assert counts == [{"large": 1, "zone-a": 1}, *[{"zone-a": 1}] * 3]


def test_balancing_leaves_out_a_similar_group_whose_nodes_are_too_small():
    """Similar groups may differ by a twentieth: where the pods need all of a node, the larger ones are bought."""
    made = Fleet(
        [priced("dear", 4, 1.2), zone("a", 8, 0.3), zone("b", 8, 0.3, allocatable="7700m")],
        {"dear": [[3970], [3970]], "zone-a": [[7000]]},
        **BALANCED,
        consolidation_budgets="nodes=100%",
        scale_down_utilization_threshold=0.1,
    )
    made.run(minutes(6))
    assert made.kinds() == {"zone-a": 2}
