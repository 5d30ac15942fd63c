"""Empty nodes that expected pods would need outlive --scale-down-unneeded-time: a fiftieth of the fleet, for --buy-back-price."""

from __future__ import annotations

from msgspec.structs import replace
from tests.nodes import frozen
from tests.nodes.consolidation.fleet import Fleet, priced
from tests.nodes.consolidation.test_idle import regular

from kubetide.nodes.explain.answers import explain_node
from kubetide.units.time import format_rfc3339, minutes

SMALL = ("small", 4, 0.2)


def large(empty, *, used=60, groups=(SMALL,), **settings):
    """Return a fleet whose fiftieth is more than a node, and empty nodes in each group."""
    places = {name: [[]] * empty for name, *_ in groups}
    places[groups[0][0]] = [*([[3500]] * used), *([[]] * empty)]
    return Fleet([priced(*one, maximum=100) for one in groups], places, **settings)


def spares(made, used=60):
    return sum(made.kinds().values()) - used


def test_a_node_for_an_expected_pod_stays_and_explain_says_until_when():
    """After scale-down's ten minutes it stays for as long as buying it back counts for, and not longer."""
    made = large(1)
    regular(made, 1, node="small-60")
    made.run(minutes(20))
    assert spares(made) == 1
    reported = explain_node(made.state, "small-60", made.now)
    assert reported.reason == "DemandExpected"
    assert "kept for 15m0s more (--buy-back-price), until 2026" in reported.sentence
    assert spares(made.run(minutes(7))) == 0


def test_the_price_of_buying_back_says_how_long():
    """The spare is removed after the ten minutes and eight more, however many pods are expected still."""
    made = large(1, buy_back_price=minutes(8))
    regular(made, 1, node="small-60")
    made.run(minutes(12))
    regular(made, 1, node="small-60")
    assert spares(made.run(minutes(4))) == 1
    assert spares(made.run(minutes(5))) == 0


def bought_for_a_late_pod(**settings):
    """Return how many nodes are bought for a pod that comes as the expected one did, 15 minutes later."""
    made = large(1, **settings)
    regular(made, 1, node="small-60")
    made.run(minutes(15))
    made.apply(pods=(frozen.pod("late", cpu="3", created=format_rfc3339(made.now)),))
    return made.run(minutes(1)).made


def test_the_pod_that_was_expected_finds_it():
    """Nothing is bought for the pod while the spare exists; after its removal one node is."""
    assert bought_for_a_late_pod() == 0
    assert bought_for_a_late_pod(buy_back_price=minutes(1)) == 1


def test_what_nobody_is_expected_to_need_goes():
    """Of three empty nodes the two that no expected pod needs go early."""
    made = large(3)
    regular(made, 1, node="small-60")
    assert spares(made.run(minutes(15))) == 1


def test_all_together_cost_no_more_than_a_fiftieth_of_the_fleet():
    """Three expected pods need three nodes: of 12.6 an hour one of 0.2 is retained beyond scale-down's time."""
    made = large(3)
    regular(made, 3, node="small-60")
    assert spares(made.run(minutes(8))) == 3
    assert spares(made.run(minutes(8))) == 1


def test_in_a_small_fleet_none_is_retained():
    """A node of ten is more than the share: it goes at upstream's time."""
    made = large(1, used=10)
    regular(made, 1, node="small-10")
    assert spares(made.run(minutes(9)), used=10) == 1
    assert spares(made.run(minutes(4)), used=10) == 0


def test_an_unready_node_is_not_retained():
    """No pod could use it."""
    made = large(1, scale_down_unready_time=minutes(10))
    regular(made, 1, node="small-60")
    made.run(minutes(5))
    node = made.state.nodes["small-60"]
    broken = frozen.node("small-60", cpu="4", memory="64Gi", labels={"kind": "small"}, ready=False)
    made.apply(nodes=(replace(broken, metadata=node.metadata),))
    assert spares(made.run(minutes(8))) == 0
