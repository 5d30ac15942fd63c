"""Remembered demand, and disruption budgets over scale-down: which nodes are not given away after all."""

from __future__ import annotations

import pytest
from tests.nodes import frozen, live
from tests.nodes.consolidation.fleet import Fleet, priced
from tests.nodes.frozen import pod

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.explain.answers import explain_node
from kubetide.units.time import format_rfc3339, hours, minutes, seconds

SOON = {"scale_down_unneeded_time": minutes(3), "scale_down_delay_after_add": minutes(0)}


def burst(**settings):
    """A fleet of one group whose pods come for a moment three times in half an hour, and no more."""
    made = Fleet([priced("a", 4, 0.2)], {"a": [[3000]]}, consolidation_enabled=False, **SOON, **settings)
    bought = []
    for number in range(3):
        before = made.groups["a"].target_size
        made.apply(pods=(pod(f"burst-{number}", cpu="3", created=format_rfc3339(made.now)),))
        made.run(minutes(1))
        bought.append(made.groups["a"].target_size - before)
        made.apply(gone=made.deletion_of(f"burst-{number}"))
        made.run(minutes(9))
    return made, bought


def test_without_the_flag_a_node_is_bought_again_and_again():
    """The default is upstream's."""
    made, bought = burst()
    assert bought == [1, 1, 1]
    assert made.kinds() == {"a": 1}


def test_nodes_that_would_be_bought_back_stay():
    """The second burst finds the first in memory, so the third finds its node, and explain says why the node is there."""
    made, bought = burst(remember_demand=minutes(30), buy_back_price=minutes(15))
    assert bought == [1, 1, 0]
    assert made.kinds() == {"a": 2}
    spare = next(name for name in made.state.memory.consolidation.kept)
    reported = explain_node(made.state, spare, made.now)
    assert reported.reason == "DemandExpected"
    assert "group a was needed" in reported.sentence


def test_demand_is_forgotten():
    """When nothing came for as long as it is remembered the spare node goes."""
    made, _ = burst(remember_demand=minutes(30), buy_back_price=minutes(15))
    made.run(minutes(40))
    assert made.kinds() == {"a": 1}
    assert made.state.memory.consolidation.kept == {}


def test_a_node_that_is_kept_uses_up_no_place_of_others_that_may_go():
    """One node is drained at a time: the first by name is kept for demand, and the second goes meanwhile."""
    groups = [priced(name, 4, 0.2) for name in "abc"]
    made = Fleet(
        groups,
        {"a": [[300]], "b": [[300]], "c": [[2500]]},
        consolidation_enabled=False,
        remember_demand=hours(2),
        buy_back_price=hours(1),
        max_drain_parallelism=1,
        **SOON,
    )
    made.state.memory.consolidation.bought = {"a": ((made.now, 2),)}
    made.run(minutes(10))
    assert made.kinds() == {"a": 1, "c": 1}


def test_a_low_price_of_buying_back_retains_nothing():
    """Retaining a node costs more than buying it back."""
    _, bought = burst(remember_demand=minutes(30), buy_back_price=minutes(5))
    assert bought == [1, 1, 1]


def test_budgets_hold_for_scale_down_too():
    """With consolidation enabled they say how many empty nodes go at once."""
    made = Fleet(
        [priced("a", 4, 0.2)],
        {"a": [[3000], [], [], []]},
        consolidation_budgets="nodes=0 reasons=Empty",
        **SOON,
    )
    made.run(minutes(30))
    assert made.kinds() == {"a": 4}
    assert explain_node(made.state, "a-1", made.now).reason == "DisruptionBudget"


def test_a_budget_for_empty_nodes_holds_for_a_move_whose_pods_have_ended():
    """The new node is there, and the old one has become empty meanwhile: it may not go as an empty one."""
    groups = [priced("large", 16, 0.8), priced("small", 9, 0.3)]
    made = Fleet(groups, {"large": [[8500]]}, consolidation_budgets="nodes=1; nodes=0 reasons=Empty")
    made.run(minutes(1))
    assert made.kinds() == {"large": 1, "small": 1}
    made.apply(gone=made.deletion_of("large-0-p0"))
    made.run(minutes(3))
    assert made.kinds() == {"large": 1, "small": 1}


@pytest.mark.parametrize("budgets", ["nodes=1", "nodes=1 reasons=Empty; nodes=1 reasons=Underutilized"])
def test_a_budget_counts_the_nodes_of_one_tick_together(budgets):
    """One empty and one underutilized node could both go; the budgets let one go at once, whatever its reason."""
    times = {"scale_down_unneeded_time": seconds(30), "scale_down_delay_after_add": minutes(0)}
    groups = [priced("a", 4, 0.2)]
    made = Fleet(groups, {"a": [[3000], [300], []]}, consolidation_budgets=budgets, **times)
    counts = [made.run(minutes(1)).kinds()["a"] for _ in range(4)]
    assert counts == [3, 2, 1, 1]


def test_a_node_that_is_not_ready_uses_up_the_budget():
    """With one node of three broken, ten in a hundred let no other go."""
    times = {"scale_down_unneeded_time": seconds(30), "scale_down_delay_after_add": minutes(0)}
    made = Fleet(
        [priced("a", 4, 0.2)], {"a": [[3000], [3000], []]}, consolidation_budgets="nodes=10%", **times
    )
    made.apply(nodes=[frozen.lost_node("a-0", frozen.START, cpu="4", memory="64Gi", labels={"kind": "a"})])
    assert made.run(minutes(10)).kinds() == {"a": 3}
    assert explain_node(made.state, "a-2", made.now).reason == "DisruptionBudget"


def test_a_lost_node_goes_although_it_uses_up_the_budget():
    """It is disrupted already: once it has been unready for long enough it goes, and then another one may."""
    times = {"scale_down_unneeded_time": seconds(30), "scale_down_delay_after_add": minutes(0)}
    made = Fleet([priced("a", 4, 0.2)], {"a": [[3000], [], []]}, consolidation_budgets="nodes=10%", **times)
    made.apply(nodes=[frozen.lost_node("a-1", frozen.START, cpu="4", memory="64Gi", labels={"kind": "a"})])
    assert made.run(minutes(19)).kinds() == {"a": 3}
    assert explain_node(made.state, "a-2", made.now).sentence.endswith(
        "the budgets let 0 nodes more go for the reason Empty (--consolidation-budgets), beside 1 that goes or is not ready"
    )
    assert made.run(minutes(5)).kinds() == {"a": 1}


LARGE = GroupSpec(name="large", instance_type="m5.4xlarge", max_size=4)
MEDIUM = GroupSpec(name="medium", instance_type="m5.xlarge", max_size=4)


async def shrink(world):
    """A workload that filled a large machine needs a small one from now on."""
    await world.deploy(replicas=7, cpu="2")
    await world.after(minutes(15))
    assert [name.rsplit("-", 1)[0] for name in world.nodes] == ["large"]
    await world.scale("web", 1)
    await world.after(hours(2))


def test_a_living_cluster_moves_to_a_smaller_machine_and_the_records_replay():
    """The new node first, then the drain; no pod is left without a node, and nothing moves after that."""
    world = live.play(
        shrink, (LARGE, MEDIUM), expander="least-cost", consolidation_enabled=True, **live.SHORT
    )
    assert [name.rsplit("-", 1)[0] for name in world.nodes] == ["medium"]
    assert world.pending == []
    chosen = [one for one in world.recorder.reasons if one.code == "ConsolidationChosen"]
    assert len({one.subject for one in chosen}) == 1
    assert live.replayed(world) > 100
