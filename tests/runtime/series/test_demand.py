"""The series of the demand, and of scaling that limits over the whole cluster prevent."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import group, node, pod, pods, template
from tests.nodes.requests import quota
from tests.runtime.series.scraped import Observed, reported

from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.nodes.series.demand import DemandSeries
from kubetide.units.time import minutes, seconds

LONG = {"scale_down_unneeded_time": minutes(3), "scale_down_delay_after_add": minutes(1)}


def listen(registry):
    series = DemandSeries(registry)
    return lambda state, *_: series.update(state)


def observed(**options):
    return Observed(listen, **options)


def skipped(world):
    return {
        (direction, reason.removesuffix("ResourceLimit").lower()): count
        for (name, *values), count in world.read().items()
        if name == "skipped_scale_events_count"
        for direction, reason in [values]
    }


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"cores_total": "0:5"}, ["cpu"]),
        ({"memory_total": "0:20"}, ["memory"]),
        ({"cores_total": "0:5", "memory_total": "0:20"}, ["cpu", "memory"]),
        ({"cores_total": "0:100", "memory_total": "0:100"}, []),
    ],
)
def test_each_group_that_a_limit_bounds_is_counted_by_resource(limits, named):
    """Each tick counts a group once for each resource that one more node would exceed."""
    world = observed(
        groups=[group("a", nodes=["n"]), group("b")],
        nodes=[node("n")],
        pods=pods("p", 3, cpu="3"),
        settings=limits,
    )
    world.tick()
    assert skipped(world) == {(way, what): 0 for way in ("down", "up") for what in ("cpu", "memory")} | {
        ("up", what): 2 for what in named
    }


def test_a_group_that_may_not_reach_its_minimum_is_counted():
    """At every tick that leaves it as it is."""
    world = observed(
        groups=[group("a", minimum=1)],
        settings={"cores_total": "0:3", "enforce_node_group_min_size": True},
    )
    for at in (0, 10, 20):
        world.tick(at=seconds(at))
    assert skipped(world)["up", "cpu"] == 3
    assert world.groups["a"].target_size == 0


@pytest.mark.parametrize(
    ("minimum", "settings"),
    [(0, {}), (1, {"enforce_node_group_min_size": True, "scale_down_enabled": False})],
)
def test_a_group_that_two_limits_bound_is_counted_once_for_each_resource(minimum, settings):
    """A CapacityQuota on the same resource is another reason to leave the group out, and no other count."""
    quotas = (quota("a", {"cpu": "1", "nodes": "0"}), quota("b", {"memory": "1Gi"}))
    world = observed(
        groups=[group("g", minimum=minimum)],
        pods=[] if minimum else [pod("p")],
        settings={"cores_total": "0:3", "capacity_quotas_enabled": True, **settings},
        capacity=CapacityChanges(capacity_quotas=quotas),
    )
    world.tick()
    assert (skipped(world)["up", "cpu"], skipped(world)["up", "memory"]) == (1, 1)


def test_each_node_that_a_limit_protects_is_counted_by_resource():
    """From when its time has come, at every tick; both resources where both would fall short."""
    world = observed(
        groups=[group("a", nodes=["n1", "n2"])],
        nodes=[node("n1"), node("n2")],
        settings={**LONG, "cores_total": "8:100", "memory_total": "20:100"},
    )
    world.tick()
    world.tick(at=minutes(2))
    assert not any(skipped(world).values())
    world.tick(at=minutes(4))
    world.tick(at=minutes(5))
    assert skipped(world) == {
        ("down", "cpu"): 4,
        ("down", "memory"): 4,
        ("up", "cpu"): 0,
        ("up", "memory"): 0,
    }


def test_one_node_may_go_and_the_next_stays():
    """The capacity that the first removal takes counts for the second."""
    world = observed(
        groups=[group("a", nodes=["n1", "n2"])],
        nodes=[node("n1"), node("n2")],
        settings={**LONG, "cores_total": "4:100"},
    )
    world.tick()
    world.tick(at=minutes(4))
    assert [*world.state.memory.scale_down.deletions] == ["n1"]
    assert skipped(world)["down", "cpu"] == 1


def of(number):
    """Controllers of their own, and namespaces."""
    return pod(f"p{number}", of=f"web{number}", metadata={"namespace": f"team{number}"})


@pytest.mark.parametrize(
    ("kinds", "reported_as"), [(1, "1"), (5, "5"), (6, "6-10"), (10, "6-10"), (11, "11+")]
)
def test_the_mixture_of_each_packing_is_reported(kinds, reported_as):
    """Groups of like pods by the machine that they were packed on, and by how many namespaces they come from."""
    big = template(cpu="8000m", labels={"node.kubernetes.io/instance-type": "m5.2xlarge"})
    world = observed(
        groups=[group("a", made=big), group("b", made=template(cpu="2")), group("full", target=10)],
        pods=[
            *(of(number) for number in range(kinds)),
            pod("p0b", of="web0", metadata={"namespace": "team0"}),
        ],
    )
    world.tick()
    found = {key: value for key, value in world.read().items() if key[0].startswith("binpacking")}
    assert found == {
        (f"binpacking_heterogeneity_{what}", cpu, machine, reported_as): value
        for cpu, machine in (("8", "m5.2xlarge"), ("2", ""))
        for what, value in (("sum", kinds), ("count", 1))
    }


def test_each_packing_of_a_salvo_is_reported():
    """The pods that the first increase leaves are packed again in the same tick."""
    kinds = {
        "a": pod("p", of="x", spec={"nodeSelector": {"on": "a"}}),
        "b": pod("q", of="y", spec={"nodeSelector": {"on": "b"}}),
    }
    world = observed(
        groups=[group(name, made=template(labels={"on": name})) for name in kinds],
        pods=list(kinds.values()),
        settings={"salvo_scale_up": True},
    )
    world.tick()
    assert sum(value for key, value in world.read().items() if key[0].endswith("neity_count")) == 3


def test_pods_that_a_group_refuses_are_not_in_its_mixture():
    """And a group that takes none has no packing."""
    world = observed(
        groups=[group("a"), group("small", made=template(cpu="1"))],
        pods=[pod("p", of="x", cpu="2"), pod("q", of="y", cpu="3")],
    )
    world.tick()
    assert {key[1]: value for key, value in world.read().items() if key[0].endswith("neity_sum")} == {"4": 2}


def test_controllers_with_too_many_kinds_of_pods_are_counted():
    """More than ten distinct pods of one controller that fit nowhere; the number goes back with them."""
    distinct = [pod(f"p{at}", cpu=f"{2000 + at}m") for at in range(11)]
    plain = pods("q", 30, of="other", cpu="3")
    world = observed(groups=[group("a", maximum=0)], pods=[*distinct, *plain])
    world.tick()
    assert world.read()["overflowing_controllers_count",] == 1
    assert world.read()["skipped_pods_count", "filter-out-pod-list-processor"] == 0
    world.tick(at=seconds(10), deleted_pods=[("default", "p3")])
    assert world.read()["overflowing_controllers_count",] == 0


def test_a_living_loop_counts_what_a_limit_prevents():
    """As many as there are ticks that leave the group out; within the limit it has grown."""

    async def story(world):
        await world.deploy(replicas=3, cpu="1500m")
        await world.after(minutes(6))
        found = world.read()
        without_options = [
            b"ScaleUpNoOptionsAvailable" in bytes(one.commands) for one in world.recorder.records
        ]
        assert len(world.nodes) == 2
        assert found["skipped_scale_events_count", "up", "CpuResourceLimit"] == sum(without_options) > 0
        assert found["skipped_scale_events_count", "up", "MemoryResourceLimit"] == 0

    reported(story, cores_total="0:4")
