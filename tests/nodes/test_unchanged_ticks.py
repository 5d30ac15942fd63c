"""Ticks of the node loop that may be skipped, as they would have the last one's result."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as of_test
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pod, pods, replica_set

from kubetide.nodes.decide import with_documents
from kubetide.nodes.decision import Result
from kubetide.nodes.registry.unchanged import is_on_time, note_unchanged, unchanged_until
from kubetide.plan.board import Intent, Workload
from kubetide.ports.cloud import Instance
from kubetide.units.time import Instant, after, before, format_rfc3339, hours, minutes, seconds

INTENTS = {"demand_sources": ("pending", "intents")}


def town(*, used="3", settings=None):
    """Two nodes of one group, both full where the pods use enough."""
    return World(
        nodes=[node("n0"), node("n1")],
        groups=[group("g", nodes=("n0", "n1"), minimum=0)],
        pods=[*pods("web", 1, cpu=used, node="n0"), *pods("api", 1, cpu=used, node="n1")],
        settings=settings,
    )


def until(world, *, ticks=3, **changes):
    for number in range(ticks):
        world.tick(at=seconds(10 * number), **changes)
    return unchanged_until(world.state)


def test_a_cluster_whose_nodes_are_used_rests():
    """Without demand and removable nodes, no later tick differs by the time alone."""
    world = town()
    assert until(world) > after(START, hours(1000))
    assert is_on_time(world.state, after(START, seconds(30)))
    assert not is_on_time(world.state, after(START, seconds(25))), "sooner than any tick so far"


@pytest.mark.parametrize(
    "why",
    [
        {"used": "100m"},
        {"settings": {"consolidation_enabled": True}},
        {"settings": {"scale_down_delay_type_local": True}},
        {"settings": {"steer_pods_to_fuller_nodes": True}},
        {"settings": {"scale_down_enabled": False}},
        {"settings": {"remember_demand": hours(1)}},
    ],
    ids=lambda why: "-".join(why.get("settings", why)),
)
def test_a_timer_that_runs_ends_the_rest(why):
    """Where a node is unneeded, or a rule with a time of its own is on, no tick is taken to be as the last."""
    assert until(town(**why)) is None


def test_a_hold_or_a_cooldown_is_no_rest():
    """Both end by the time alone."""
    world = town()
    assert until(world, holds=("the cache is old",)) is None
    cooling = town()
    cooling.state.memory.last_scale_up = before(START, minutes(1))
    assert until(cooling) is None
    over = town()
    over.state.memory.last_scale_up = before(START, minutes(20))
    assert until(over) is not None


def test_a_pod_without_a_place_is_no_rest():
    """Demand is evaluated anew in each tick."""
    world = town()
    assert until(world) is not None
    world.tick(at=minutes(1), pods=tuple(pods("more", 1, cpu="100")))
    assert unchanged_until(world.state) is None


def test_idle_ticks_end_when_a_pod_counts_as_deleted():
    """The capacity of a pod that is being deleted counts as free from 30 s after its grace on, without any change."""
    going = pod("web-0", cpu="3", node="n0")
    deleted = format_rfc3339(before(START, seconds(10)))
    meta = replace(going.metadata, deletion_timestamp=deleted, deletion_grace_period_seconds=30)
    world = World(
        nodes=[node("n0"), node("n1")],
        groups=[group("g", nodes=("n0", "n1"), minimum=0)],
        pods=[replace(going, metadata=meta), *pods("api", 1, cpu="3", node="n1")],
    )
    end = until(world)
    assert after(START, seconds(40)) <= end <= after(START, seconds(60))
    assert not world.state.memory.scale_down.unneeded
    world.tick(at=minutes(2))
    assert "n0" in world.state.memory.scale_down.unneeded
    assert unchanged_until(world.state) is None


def intent(replicas, due, *, kind="ReplicaSet", **fields):
    return Intent(Workload("default", kind, "web"), replicas, after(START, due), "schedules", **fields)


def test_a_cluster_rests_until_nodes_are_asked_for_ahead():
    """Of several intents the first to count ends the rest, four minutes before it is due; the tick then buys its node."""
    world = town(settings=INTENTS)
    late, first = intent(4, hours(2)), intent(3, hours(1))
    of_hpa = intent(9, minutes(20), kind="HorizontalPodAutoscaler")
    end = until(world, intents=(of_hpa, first, late), replica_sets=(replica_set("web", 2, cpu="2"),))
    assert end == after(START, minutes(56))
    assert world.increases(at=minutes(56) - seconds(1)) == {}
    assert world.increases(at=minutes(56)) == {"g": 1}


def test_intents_that_nobody_reads_end_no_rest():
    """Where the board is no source of demand, an intent has no time at which anything could differ."""
    assert until(town(), intents=(intent(2, hours(1)),)) > after(START, hours(1000))


def test_a_replica_that_is_no_longer_asked_for_ends_no_rest():
    """While it is missing each tick is decided; once its intent is withdrawn, the cluster rests as before."""
    world = town(settings=INTENTS)
    world.change("g", max_size=2)
    assert until(world, intents=(intent(3, minutes(2)),), replica_sets=(replica_set("web", 2),)) is None
    world.tick(at=minutes(1), intents=())
    world.tick(at=minutes(2))
    assert unchanged_until(world.state) is not None


def test_a_cluster_rests_until_requests_of_new_pods_are_forgotten():
    """What a pod that waited has taught holds for a day; the tick after it has another memory."""
    waiting = pod("web-1", cpu="1", metadata={"annotations": {"vpaUpdates": "Pod resources updated by web"}})
    world = town(settings=INTENTS)
    world.tick(pods=(waiting,))
    world.tick(at=seconds(10), deleted_pods=(("default", "web-1"),))
    world.groups["g"] = replace(world.groups["g"], target_size=2)
    world.state.memory.last_scale_up = None
    for at in range(20, 60, 10):
        world.tick(at=minutes(at))
    assert unchanged_until(world.state) == after(START, hours(24))


_INTENTS = st.lists(
    st.builds(
        intent,
        st.integers(2, 5),
        st.integers(-1, 30).map(minutes),
        kind=st.sampled_from(["ReplicaSet", "ReplicaSet", "ReplicaSet", "HorizontalPodAutoscaler"]),
        start=st.sampled_from([None, seconds(20), minutes(4)]),
        until=st.sampled_from([None, after(START, minutes(15)), after(START, minutes(40))]),
    ),
    max_size=3,
)
_SPELLS = st.lists(
    st.tuples(
        st.sampled_from(["nothing", "intents", "intents", "pod", "gone", "join"]),
        _INTENTS,
        st.sampled_from([1, 3, 15, 30]),
    ),
    min_size=2,
    max_size=6,
)


@of_test(max_examples=25, deadline=None)
@given(spells=_SPELLS, boot=st.sampled_from([None, seconds(30), minutes(5)]))
def test_skipped_ticks_would_have_decided_nothing(spells, boot):
    """Beside a loop that decides each tick anew, one that skips those at rest has the same decisions and memory."""
    soon = {**INTENTS, "scale_down_delay_after_add": minutes(1), "intent_patience": minutes(3)}
    whole, resting = (town(settings=soon) for _ in range(2))
    whole.state.memo = False
    for world in (whole, resting):
        world.state.memory.join_times = {} if boot is None else {"g": (boot,)}
        world.tick(replica_sets=(replica_set("web", 2),))
    at = 0
    for spell, (change, intents, ticks) in enumerate(spells):
        for number in range(ticks):
            at += 20
            name = f"{spell}" if number == 0 and change != "nothing" else ""
            decided = [
                _next_tick(world, seconds(at), change, name, intents, rests=world is resting)
                for world in (whole, resting)
            ]
            assert decided[0] == decided[1]


def _next_tick(world, at, change, name, intents, *, rests):
    """Make the next tick, or skip it where nothing changes and it may be; return what came of it."""
    changes = _changes(world, change, name, intents) if name else {}
    now = Instant(after(START, at))
    end = unchanged_until(world.state) if rests and not name else None
    if end is not None and now < end and is_on_time(world.state, now):
        note_unchanged(world.state, now)
        world.now, actions, events = now, [], []
        status = with_documents(world.state, Result(), now).status
    else:
        world.status = None
        actions, events, status = world.tick(at=at, **changes), world.events, world.status
    return msgspec.json.encode([actions, events, status, world.state.memory], order="deterministic")


def _changes(world, change, name, intents):
    if change == "intents":
        return {"intents": tuple(intents)}
    if change == "pod":
        return {"pods": tuple(pods(f"web-{name}", 1, cpu="100m", node="n0"))}
    if change == "gone":
        return {"deleted_pods": sorted(world.state.pods)[:1]}
    known = world.groups["g"]
    if known.target_size == len(known.instances):
        return {}
    joined = (*known.instances, Instance(provider_id=f"cloud:///z{name}"))
    world.change("g", instances=joined)
    return {"nodes": (node(f"z{name}"),), "pods": tuple(pods(f"on-{name}", 1, cpu="3", node=f"z{name}"))}
