"""What another profile of the scheduler would save."""

from __future__ import annotations

import pytest
from tests.doctor.findings import found
from tests.nodes.frozen import group, node, pod

from kubetide.nodes.settings import Settings

NAMES = [f"n{number}" for number in range(4)]


def spread(*, cpu="1", minimum=0, price=0.2, nodes=NAMES, **objects):
    """One pod on each of four nodes of 4 CPUs, in a group of these."""
    fleet = group("g", nodes=nodes, minimum=minimum, price_per_hour=price)
    pods = [pod(f"web-{name}", cpu=cpu, node=name) for name in nodes]
    return found(
        "scheduler-profile",
        groups=(fleet,),
        nodes=tuple(node(name) for name in nodes),
        pods=(*pods, *objects.pop("more", ())),
        **objects,
    )


def test_pods_that_are_spread_over_nodes():
    """Four pods of 900m fit on one of the four nodes: the three others would be empty."""
    (one,) = spread(cpu="900m")
    assert (one.severity, one.object) == ("info", "the scheduler")
    assert "pods are on 4 nodes of groups" in one.seen
    assert one.seen.endswith("they would be on 1")
    assert one.cost_per_hour == pytest.approx(0.6)
    assert "MostAllocated" in one.fix
    assert "--steer-pods-to-fuller-nodes and --consolidation-enabled" in one.fix


@pytest.mark.parametrize(
    ("spread_out", "left"),
    [
        ({"cpu": "3"}, None),
        ({"cpu": "900m", "minimum": 4}, None),
        ({"cpu": "900m", "minimum": 3}, 3),
        ({"cpu": "2"}, 2),
    ],
    ids=["full nodes", "at the minimum", "near the minimum", "halves"],
)
def test_only_what_could_go_counts(spread_out, left):
    """Nodes that stay full, or that the minimum keeps, save nothing."""
    reported = spread(**spread_out)
    assert [one.seen.endswith(f"they would be on {left}") for one in reported] == (
        [] if left is None else [True]
    )


def test_pods_of_the_node_stay_on_it():
    """A DaemonSet's pod keeps no node, and takes its part of each."""
    agents = [pod(f"agent-{name}", cpu="500m", node=name, of="agent", kind="DaemonSet") for name in NAMES]
    (one,) = spread(cpu="900m", more=agents)
    assert one.seen.endswith("they would be on 2")


def test_empty_nodes_are_those_of_scale_down():
    """A node that is empty now goes anyway."""
    (one,) = spread(cpu="900m", nodes=NAMES[:2])
    fleet = group("g", nodes=NAMES, price_per_hour=0.2)
    pods = tuple(pod(f"web-{name}", cpu="900m", node=name) for name in NAMES[:2])
    nodes = tuple(node(name) for name in NAMES)
    (with_empty,) = found("scheduler-profile", groups=(fleet,), nodes=nodes, pods=pods)
    assert with_empty.seen == one.seen
    assert with_empty.cost_per_hour == one.cost_per_hour


def test_flags_that_are_on_are_not_named():
    """What is won already is no way out."""
    (one,) = spread(
        cpu="900m", settings=Settings(consolidation_enabled=True, steer_pods_to_fuller_nodes=True)
    )
    assert "--" not in one.fix


def test_prices_that_nobody_knows():
    """The nodes are counted all the same."""
    (one,) = spread(cpu="900m", price=None)
    assert one.cost_per_hour is None
    assert found("scheduler-profile") == []
