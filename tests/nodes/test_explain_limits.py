"""What would help a pod that the limits keep from a node: all limits that are in its way, as far as they must be raised."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import World, group, node, pod, template
from tests.nodes.requests import quota

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.equivalent_pods import explain_equivalent_pods
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.ports.cloud import GroupOptions, Instance
from kubetide.units.time import format_rfc3339, minutes

GPUS = {"cloud.google.com/gke-accelerator": "t4"}
ON_IT = pod("z", cpu="4", node="n1")
WAITING = [pod(name, cpu="4") for name in "abc"]


def full(*, maximum=1, settings=None, quotas=(), **fields):
    """Return a world in which three pods wait, each for a node of its own, and the only node is full."""
    return World(
        pods=[*WAITING, ON_IT],
        nodes=[node("n1", labels=GPUS, status={"allocatable": {"nvidia.com/gpu": "1"}})],
        groups=[group("g", maximum=maximum, nodes=["n1"], **fields)],
        settings={"gpu_label": next(iter(GPUS)), "capacity_quotas_enabled": bool(quotas), **(settings or {})},
        capacity=CapacityChanges(capacity_quotas=tuple(quotas)),
    )


def explained(world, name):
    return explain_pod(world.state, ("default", name), world.now)


LIMITS = [
    pytest.param({"settings": {"cores_total": "0:8"}}, "raise --cores-total from 0:8 to 0:16", id="cores"),
    pytest.param(
        {"settings": {"memory_total": "0:40"}}, "raise --memory-total from 0:40 to 0:64", id="memory"
    ),
    pytest.param(
        {"settings": {"max_nodes_total": 2}}, "raise --max-nodes-total from 2 to 4", id="nodes in total"
    ),
    pytest.param(
        {"settings": {"gpu_total": ("t4:0:2",)}}, "raise --gpu-total from t4:0:2 to t4:0:4", id="GPUs"
    ),
    pytest.param(
        {"quotas": [quota("small", {"nodes": "2", "memory": "40Gi"})]},
        "raise memory from 40Gi to 64Gi and nodes from 2 to 4 in CapacityQuota/small",
        id="quota",
    ),
]


@pytest.mark.parametrize(("limits", "change"), LIMITS)
def test_a_limit_that_lets_in_one_more_is_named_beside_the_maximum(limits, change):
    """The first pod needs a higher maximum alone; the last one the limit as well, and both together do buy three nodes."""
    world = full(**limits)
    assert world.increases() == {}
    first, last = explained(world, "a").way_out, explained(world, "c").way_out
    assert first is not None
    assert (first.text, first.verified) == ("raise max of group g from 1 to 2", True)
    assert last is not None
    assert (last.text, last.verified) == (f"raise max of group g from 1 to 4 and {change}", True)
    assert (
        explain_equivalent_pods(world.state, [("default", name) for name in "abc"], world.now).way_out == last
    )


@pytest.mark.parametrize(("limits", "change"), LIMITS)
def test_what_is_bought_after_the_change_is_enough(limits, change):
    """With the amounts that the explanation names the loop buys a node for each pod, and with less it does not."""
    assert full(maximum=4, **limits).increases() == {"g": 1}
    raised = {
        "cores_total": "0:16",
        "memory_total": "0:64",
        "max_nodes_total": 4,
        "gpu_total": ("t4:0:4",),
    }
    if "quotas" in limits:
        assert full(maximum=4, quotas=[quota("small", {"nodes": "4", "memory": "64Gi"})]).increases() == {
            "g": 3
        }
        return
    [name] = limits["settings"]
    assert str(raised[name]).strip("(',)") in change
    assert full(maximum=4, settings={name: raised[name]}).increases() == {"g": 3}


@pytest.mark.parametrize(("limits", "change"), LIMITS)
def test_a_pod_behind_the_last_node_of_a_limit_is_not_said_to_be_helped(limits, change):
    """Where a limit leaves a node for the first pod only, the last one is told which limit keeps it."""
    world = full(maximum=9, **limits)
    assert explained(world, "a").status == "helped"
    found = explained(world, "c")
    assert (found.status, found.sentence) == (
        "refused",
        f"No group takes it. What would help: {change} (group g).",
    )
    assert found.groups[0].why.startswith("its nodes would take it, but the limits leave no node for it")
    together = explain_equivalent_pods(world.state, [("default", name) for name in "abc"], world.now)
    assert together.sentence == found.sentence


def test_a_limit_that_is_far_away_is_not_raised():
    """--max-nodes-total of a hundred has no part in what a group of one node lacks."""
    found = explained(full(settings={"max_nodes_total": 100}), "c")
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == ("raise max of group g from 1 to 4", True)


def test_a_group_that_grows_as_a_whole_is_told_the_total_for_all_of_it():
    """A group of all nodes or none that --max-nodes-total does not let in names the total with which it fits."""
    whole = GroupOptions(zero_or_max_node_scaling=True)
    world = full(maximum=4, settings={"max_nodes_total": 3}, options=whole)
    assert world.increases() == {}
    found = explained(world, "a")
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == ("raise --max-nodes-total from 3 to 4", True)


def test_nodes_that_are_on_their_way_count_once():
    """A node that has registered and not started is not counted beside the copy that stands for it."""
    large = group("large", maximum=0, made=template(cpu="8", memory="32Gi"))
    world = World(pods=[pod("b", cpu="4")], groups=[group("g"), large], settings={"cores_total": "0:8"})
    assert world.increases() == {"g": 1}
    world.groups["g"] = replace(world.groups["g"], instances=(Instance(provider_id="cloud:///n1"),))
    starting = node("n1", ready=False, created=format_rfc3339(world.now))
    assert world.increases(at=minutes(1), nodes=(starting,), pods=(pod("a", cpu="8"),)) == {}
    way_out = next(one.way_out for one in explained(world, "a").groups if one.group == "large")
    assert way_out is not None
    assert way_out.text == "raise max of group large from 0 to 1 and raise --cores-total from 0:8 to 0:12"


def test_equivalent_pods_of_which_the_first_has_its_node_name_what_keeps_the_last():
    """Where the first pod waits for a node that is on its way, the page of all says what the others lack."""
    world = full(maximum=2)
    assert world.increases() == {"g": 1}
    assert explained(world, "a").status == "waits"
    together = explain_equivalent_pods(world.state, [("default", name) for name in "abc"], world.now)
    assert together.sentence == "No group takes it. What would help: raise max of group g from 2 to 4."
