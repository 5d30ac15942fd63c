"""How long nodes wait for their removal and for their evaluation."""

from __future__ import annotations

from tests.nodes.frozen import group, node, pod
from tests.nodes.live import SHORT as SOON
from tests.runtime.series.scraped import Observed, reported

from kubetide.nodes.decision import Outcome
from kubetide.nodes.series.removals import RemovalSeries
from kubetide.units.time import minutes, seconds

SHORT = {"scale_down_unneeded_time": minutes(3), "scale_down_delay_after_add": minutes(1)}


def listen(registry):
    series = RemovalSeries(registry)
    return lambda state, commands, outcomes, now: series.update(state, commands.actions, outcomes, now)


def two_nodes(**settings):
    return Observed(
        listen,
        groups=[group("g", nodes=["n1", "n2"])],
        nodes=[node("n1"), node("n2")],
        settings={**SHORT, **settings},
    )


def latencies(world):
    return {
        (*values, name.removeprefix("node_removal_latency_seconds_")): value
        for (name, *values), value in world.read().items()
        if name.startswith("node_removal_latency_seconds_")
    }


def test_a_node_that_goes_has_waited_since_it_might():
    """From the end of its unneeded time to the tick that begins its deletion."""
    world = two_nodes(max_scale_down_parallelism=1)
    world.tick()
    assert latencies(world) == {}
    world.tick(at=minutes(3) + seconds(10))
    assert latencies(world) == {("none", "true", "sum"): 10, ("none", "true", "count"): 1}


def test_an_unready_node_waits_for_its_own_time():
    """A node waits for the time of its state."""
    sick = node("n2", ready=False)
    world = Observed(
        listen,
        groups=[group("g", nodes=["n2"])],
        nodes=[sick, node("n1", spec={"providerID": "other:///n1"})],
        settings={**SHORT, "scale_down_unready_time": minutes(8), "ok_total_unready_count": 3},
    )
    world.tick()
    world.tick(at=minutes(9))
    assert latencies(world) == {("none", "true", "sum"): 60, ("none", "true", "count"): 1}


def test_a_node_that_is_needed_again_names_what_held_it():
    """The last reason other than time counts; a node that was never eligible is not counted."""
    world = two_nodes(cores_total="8:100")
    world.tick()
    world.tick(at=minutes(4))
    on_both = [pod(f"p{name}", cpu="3", node=name) for name in ("n1", "n2")]
    world.tick(at=minutes(5), pods=tuple(on_both))
    assert latencies(world) == {
        ("MinimalResourceLimitExceeded", "false", "sum"): 2 * 120,
        ("MinimalResourceLimitExceeded", "false", "count"): 2,
    }
    early = two_nodes()
    early.tick()
    early.tick(at=minutes(2), pods=tuple(on_both))
    early.tick(at=minutes(9))
    assert latencies(early) == {}


def test_advice_is_no_deletion():
    """A node that would be tainted if the loop might act goes on waiting."""
    world = two_nodes()
    world._do = lambda _: Outcome("withheld")
    world.tick()
    world.tick(at=minutes(4))
    assert latencies(world) == {}


def test_the_longest_time_without_a_look_is_reported():
    """Nodes that are left out as enough are unneeded wait from the tick before; 0 when all have had their turn."""
    names = [f"n{at}" for at in range(4)]
    world = Observed(
        listen,
        groups=[group("g", nodes=names)],
        nodes=[node(name) for name in names],
        settings={
            "scale_down_unneeded_time": seconds(10),
            "max_scale_down_parallelism": 1,
            "cores_total": "16:100",
        },
    )

    def longest():
        return world.read()["max_node_skip_eval_duration_seconds",]

    assert longest() == 0
    seen = []
    for at in (0, 10, 20, 30):
        world.tick(at=seconds(at))
        seen.append(longest())
    assert len(world.state.memory.scale_down.unneeded) == 2
    assert seen == [0, 10, 20, 30]
    world.tick(at=seconds(40), pods=tuple(pod(f"p{name}", cpu="3", node=name) for name in names))
    assert longest() == 0


def test_a_living_loop_counts_the_nodes_that_go():
    """Each deletion that begins, and none of those that do not; they go at the next look after their time."""

    async def story(world):
        await world.deploy(replicas=4, cpu="1500m")
        await world.after(minutes(5))
        await world.scale("web", 1)
        await world.after(minutes(15))
        found = world.read()
        removed = sum(count for key, count in found.items() if key[0] == "scaled_down_nodes_total")
        assert removed == 3
        assert found["node_removal_latency_seconds_count", "none", "true"] == removed
        assert 0 < found["node_removal_latency_seconds_sum", "none", "true"] <= removed * 10

    reported(story, **SOON)
