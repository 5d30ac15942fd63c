"""--max-nodegroup-binpacking-duration: an estimate adds no node more after its time, and what it has found is an option."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, pods

from kubetide.scheduling.estimator import forked
from kubetide.units.time import ZERO, minutes, seconds

PART = 64
PODS = 3 * PART + 8
ALONE = {
    "spec": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": {"app": "web"}},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        }
    }
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of an estimate end after fewer nodes than they do elsewhere."""
    monkeypatch.setattr(forked, "REPEATED_IN_A_PART", PART - 2)


def apart(step_time, *, groups=("g",), **settings):
    """Return a world whose pods need a node each, and whose steps take that long."""
    world = World(
        pods=pods("p", PODS, cpu="1", **ALONE),
        groups=[group(name, maximum=1000) for name in groups],
        settings=settings,
    )
    world.step_time = step_time
    return world


def steps(world):
    return [one.next_step for one in world.commands if one.next_step]


def cut(world):
    return [one.subject for one in world.reasons if one.code == "EstimateCut"]


def test_an_estimate_goes_on_in_the_next_step():
    """Within the default of ten seconds all pods get a node, whatever the number of steps."""
    world = apart(seconds(3))
    assert world.increases() == {"g": PODS}
    assert steps(world) == ["pack", "pack", "pack", "scale_down"]
    assert cut(world) == []


def test_after_its_time_it_adds_no_node():
    """Nodes that were found in time are bought, and the remaining pods wait for the next tick."""
    world = apart(seconds(6))
    # In the second part one node is looked at by itself before the next are added like it, in the first two are.
    there = 2 * PART - 1
    assert world.increases() == {"g": there}
    assert cut(world) == ["g"]
    world.step_time = seconds(1)
    assert world.increases(at=minutes(1)) == {"g": PODS - there}


@pytest.mark.parametrize("limit", [seconds(60), minutes(10), ZERO])
def test_the_flag_is_the_limit(limit):
    """With more time, or with 0 for no limit, the same steps reach all nodes."""
    world = apart(seconds(6), max_nodegroup_binpacking_duration=limit)
    assert world.increases() == {"g": PODS}
    assert cut(world) == []


def test_each_group_has_its_own_time():
    """The time of one estimate does not reduce the next one's."""
    world = apart(seconds(3), groups=("g1", "g2", "g3"), expander="least-nodes")
    assert list(world.increases().values()) == [PODS]
    assert len(steps(world)) == 3 * 4
    assert cut(world) == []


def test_the_time_for_all_groups_lets_an_estimate_come_to_its_end():
    """--max-binpacking-time leaves out groups that were not begun."""
    world = apart(seconds(3), groups=("g1", "g2", "g3"), max_binpacking_time=seconds(5))
    assert world.increases() == {"g1": PODS}
    assert [dict(one.fields)["groups"] for one in world.reasons if one.code == "PackingCut"] == [2]
