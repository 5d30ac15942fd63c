"""Empty nodes go early where no expected pod would need them, and not for a while after one was bought back."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes import frozen
from tests.nodes.consolidation.fleet import Fleet, priced

from kubetide.nodes.consolidation.idle import KEPT
from kubetide.nodes.consolidation.memory import GonePod
from kubetide.nodes.explain.answers import explain_node
from kubetide.ports.cloud import Instance
from kubetide.units.time import before, format_rfc3339, hours, minutes, seconds

SMALL = ("small", 4, 0.2)


def idle(*sizes, groups=(SMALL,), **settings):
    """Return a fleet with one used node, and empty ones."""
    places = {groups[0][0]: [[3500], *([] for _ in range(sizes[0]))]}
    places.update({one[0]: [[]] * number for one, number in zip(groups[1:], sizes[1:], strict=True)})
    return Fleet([priced(*one) for one in groups], places, **settings)


def early(made):
    return [one.subject for one in made.reasons if one.code == "IdleNodeChosen"]


def regular(made, pods, *, node, cpu=3000):
    """Let pods have come to a node every seven minutes of the last half hour, each time for a moment."""
    gone = [
        GonePod(
            frozen.pod(
                f"regular-{ago}-{at}", cpu=f"{cpu}m", node=node, created=format_rfc3339(before(made.now, ago))
            ),
            before(made.now, ago - seconds(1)),
        )
        for ago in map(minutes, (29, 22, 15, 8, 1))
        for at in range(pods)
    ]
    made.state.memory.consolidation.gone += tuple(gone)


def test_an_empty_node_that_nobody_needs_goes_early():
    """It does not stay for the ten minutes of --scale-down-unneeded-time, and the record says why."""
    made = idle(1)
    assert made.run(minutes(4)).kinds() == {"small": 1}
    assert early(made) == ["small-1"]
    [why] = [one for one in made.reasons if one.code == "IdleNodeChosen"]
    assert dict(why.fields)["group"] == "small"


def test_without_the_flag_it_stays_for_upstream_s_time():
    """The default is upstream's."""
    made = idle(1, consolidation_enabled=False)
    assert made.run(minutes(9)).kinds() == {"small": 2}


def test_pods_that_come_regularly_hold_their_node():
    """One every seven minutes is enough to retain one node for scale-down's time, and explain says so."""
    made = idle(2, consolidation_budgets="")
    regular(made, 1, node="small-1")
    made.run(minutes(6))
    assert made.kinds() == {"small": 2}
    [stays] = [name for name in made.state.nodes if name != "small-0"]
    assert explain_node(made.state, stays, made.now).consolidated == KEPT
    assert made.run(minutes(7)).kinds() == {"small": 1}


def test_a_pod_that_came_once_holds_none():
    """It is less likely than not that another comes within --buy-back-price."""
    made = idle(1)
    made.state.memory.consolidation.gone = (
        GonePod(
            frozen.pod("once", cpu="3", node="small-1", created=format_rfc3339(before(made.now, minutes(5)))),
            made.now,
        ),
    )
    assert made.run(minutes(4)).kinds() == {"small": 1}
    assert early(made) == ["small-1"]


def test_of_equal_use_the_expensive_node_goes():
    """Expected pods are put on the cheapest of the empty nodes."""
    made = idle(0, 1, 1, groups=(SMALL, ("dear", 4, 0.8), ("plain", 4, 0.3)))
    regular(made, 1, node="plain-0")
    made.run(minutes(6))
    assert made.kinds() == {"small": 1, "plain": 1}


def test_young_nodes_stay():
    """A node that has just joined may be the one that pods were promised (--scale-down-delay-after-add)."""
    made = idle(1, scale_down_delay_after_add=minutes(150))
    assert made.run(minutes(9)).kinds() == {"small": 2}


def test_the_minimum_holds():
    """No group falls below it."""
    made = Fleet([frozen.replace(priced(*SMALL), min_size=2)], {"small": [[3500], [], []]})
    assert made.run(minutes(9)).kinds() == {"small": 2}


def test_a_pod_that_no_group_takes_keeps_no_empty_node():
    """Nor does it wait for one of them."""
    made = Fleet([priced(*SMALL)], {"small": [[3500], [], []]}, more=[frozen.pod("impossible", cpu="500")])
    assert made.run(minutes(9)).kinds() == {"small": 1}


@pytest.mark.parametrize(("lost_for", "left"), [(minutes(10), 3), (hours(2), 1)])
def test_a_lost_node_that_must_stay_uses_up_no_budget_for_ever(lost_for, left):
    """One in ten nodes may go at once; a node at its group's minimum counts while it may still come back."""
    lost = frozen.lost_node("kept-0", before(frozen.START, lost_for))
    made = Fleet([priced(*SMALL), replace(priced("kept", 4, 0.3), min_size=1)], {"small": [[3500], [], []]})
    made.change("kept", target_size=1, instances=(Instance(provider_id="cloud:///kept-0"),))
    made.tick(nodes=(lost,))
    assert made.run(minutes(8)).kinds() == {"small": left, "kept": 1}


def test_budgets_for_empty_nodes_hold():
    """As they do for scale-down's own removals."""
    made = idle(2, consolidation_budgets="nodes=0 reasons=Empty")
    assert made.run(minutes(9)).kinds() == {"small": 3}


def test_after_a_node_was_bought_back_its_group_is_left_alone():
    """The time is --buy-back-price at first, and doubles."""
    made = idle(1, scale_down_unneeded_time=minutes(240))
    held = []
    for number in range(3):
        waited = 0
        while made.kinds() != {"small": 1} and waited < 120:
            made.run(minutes(1))
            waited += 1
        assert waited >= (0, 15, 30)[number]
        name = f"late-{number}"
        made.apply(pods=(frozen.pod(name, cpu="3", created=format_rfc3339(made.now)),))
        made.run(minutes(1))
        held.append((made.state.memory.consolidation.undone["small"].until - made.now) // minutes(1))
        made.apply(gone=made.deletion_of(name))
    assert held == [15, 30, 60]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 6), st.integers(0, 4))
def test_pods_like_those_that_come_regularly_find_capacity(empty, pods):
    """As many pods as usually come, of the same size, need no new node for as long as scale-down would have retained one."""
    made = Fleet([priced(*SMALL)], {"small": [[3500], *([] for _ in range(empty))]})
    pods = min(pods, empty)
    regular(made, pods, node="small-1")
    made.run(minutes(9))
    assert made.kinds()["small"] >= 1 + pods
