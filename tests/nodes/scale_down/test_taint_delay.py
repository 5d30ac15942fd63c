"""The delay between a taint and the deletion: fixed, or by how fast taints are seen."""

from __future__ import annotations

import msgspec
import pytest
from tests.nodes.live import SHORT, play, replayed
from tests.nodes.live import World as LiveWorld

from kubetide.nodes.decision import Outcomes
from kubetide.nodes.scale_down.deletion.taint_delay import delay_after_taint
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.objects.kinds import NODES
from kubetide.units.time import after, between, hours, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-01-01T00:00:00Z")
DYNAMIC = {"dynamic_node_delete_delay_after_taint_enabled": True}


def test_three_times_the_slowest_of_the_last_hour():
    """A deletion waits its own latency and twice the largest one within an hour; an hour later that is forgotten."""
    state = State(Settings(**DYNAMIC))
    assert delay_after_taint(state, seconds(4), START) == seconds(12)
    assert delay_after_taint(state, seconds(1), after(START, minutes(10))) == seconds(1 + 2 * 4)
    assert delay_after_taint(state, seconds(1), after(START, hours(1))) == seconds(1 + 2 * 1)


@pytest.mark.parametrize(("settings", "latency"), [({}, seconds(4)), (DYNAMIC, None)])
def test_the_fixed_delay_holds_without_a_measurement(settings, latency):
    """Where nothing is measured, or where the flag is off, the fixed delay holds and nothing is remembered."""
    state = State(Settings(node_delete_delay_after_taint=seconds(7), **settings))
    assert delay_after_taint(state, latency, START) == seconds(7)
    assert state.memory.scale_down.taint_latencies == ()


class SlowWatch:
    """A cluster whose watch of nodes shows each change so much later."""

    def __init__(self, inner, clock, lag):
        self._inner, self._clock, self._lag = inner, clock, lag

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def watch(self, kind, **selectors):
        async for batch in self._inner.watch(kind, **selectors):
            if kind is NODES:
                await self._clock.sleep(self._lag)
            yield batch


def drained(lag, **settings):
    """Run a story in which nodes become idle; return the latencies measured, and the times from taint to cloud call."""

    async def story(world):
        await world.deploy(replicas=4, cpu="1500m")
        await world.after(minutes(5))
        await world.scale("web", 1)
        await world.after(minutes(12))
        assert len(world.nodes) == 1

    def world_of(clock, groups, **rest):
        return LiveWorld(clock, groups, wrap=lambda inner: SlowWatch(inner, clock, lag), **rest)

    world = play(story, world_of=world_of, **SHORT, **settings)
    assert replayed(world) > 50
    latencies, waits, tainted = [], [], None
    for record in world.recorder.records:
        actions = msgspec.json.decode(record.commands).get("actions", ())
        latency = msgspec.json.decode(record.outcomes, type=Outcomes).taint_latency
        if any(one["op"] == "addTaint" and one["key"].startswith("ToBe") for one in actions):
            tainted = record.now
            latencies.append(latency)
        if any(one["op"] == "deleteNodes" for one in actions) and tainted is not None:
            waits.append(between(tainted, record.now))
            tainted = None
    return latencies, waits


def test_a_slow_watch_makes_deletions_wait_longer():
    """With a watch that lags by 4 s a deletion begins after 12 s and not after the fixed 5 s; with a fast one sooner."""
    latencies, waits = drained(seconds(4), **DYNAMIC)
    assert latencies
    assert all(seconds(4) <= one <= seconds(6) for one in latencies)
    assert waits[0] >= seconds(12)
    fast, at_once = drained(seconds(0), **DYNAMIC)
    assert max(fast) <= seconds(1)
    assert at_once[0] < seconds(5)


def test_taints_that_are_never_seen_leave_the_fixed_delay():
    """Where the watch shows nothing for half a minute the measurement is given up."""
    latencies, waits = drained(seconds(90), **DYNAMIC)
    assert latencies[0] is None
    assert waits[0] >= seconds(5)
