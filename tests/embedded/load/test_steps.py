"""Steps that are worked out together are those that come one by one."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.load.worlds import START, World, make_node, make_pod, make_service

from kubetide.embedded.load import SeriesTrace
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant, parse_rfc3339, seconds

STEPS = 100
LEAKS = 40 << 20

rates = st.lists(
    st.sampled_from([0.0, 5.0, 20.0, 33.3, 60.0, 95.0, 150.0]), min_size=2 * STEPS, max_size=2 * STEPS
)
changes = st.dictionaries(st.integers(1, STEPS), st.sampled_from(["more", "fewer", "node"]), max_size=6)


def world_of(first, second):
    """Two services on a large node and a small one, which both crowd; one has steps of its own, the other leaks."""

    def trace(values, step, name):
        return SeriesTrace(values, step=step, start=START, name=name)

    web = make_service(trace=trace(first, seconds(15), "web"), max_queue_s=3.0, base_cpu_milli=7.0)
    api = make_service(
        name="api",
        selector=Selector.parse("app=api"),
        trace=trace(second, seconds(15) // 2, "api"),
        base_memory_bytes=50 << 20,
        memory_per_request_bytes=1 << 20,
        leak_bytes_per_hour=LEAKS,
    )
    world = World(web, api, nodes=("n1",), cpu="2")
    world.nodes.put(("", "n2"), make_node("n2", "900m"))
    for number in range(3):
        world.put(make_pod(f"w{number}", node=f"n{1 + number % 2}"))
        world.put(make_pod(f"a{number}", app="api", node=f"n{1 + number % 2}", memory_limit="120Mi"))
    return world


def history(first, second, happens, *, disturbed):
    """Return all that was seen of each step; ``disturbed``: nodes are reported before each one, and nothing goes ahead."""
    world, seen, kills = world_of(first, second), [], []
    world.model.on_oom(lambda key, container: kills.append((world.clock.time, key, container)))
    for step in range(1, STEPS + 1):
        now = Instant(START + seconds(15) * step)
        if disturbed:
            world.nodes.put(("", "n3"), make_node("n3", f"{step}"))
        else:
            world.nodes.put(("", "n1"), make_node("n1", "2"))  # as kubelets report that they are there
        found = world.to(15 * step)
        used = world.model.usage(now)
        columns = msgspec.structs.asdict(found)
        columns |= {
            f"of_{name}": one for name, one in msgspec.structs.asdict(columns.pop("resources")).items()
        }
        columns |= {"cpu": used.cpu_nano, "memory": used.memory, "requests": used.requests}
        seen.append(({name: one.tolist() for name, one in columns.items()}, world.model.cpu_used_milli))
        match happens.get(step):
            case "more":
                world.put(make_pod(f"w-{step}", started=now))
            case "fewer":
                world.remove("w0")
            case "node":
                world.nodes.put(("", "n2"), make_node("n2", "1700m"))
    return seen, kills


@settings(max_examples=12, deadline=None)
@given(rates, rates, changes)
def test_steps_that_are_worked_out_ahead_are_those_of_one_by_one(first, second, happens):
    """Whatever queues up, crowds a node, leaks or changes, each step has the same numbers to the last bit."""
    ahead = history(first, second, happens, disturbed=False)
    assert ahead == history(first, second, happens, disturbed=True)


def test_a_quiet_day_goes_ahead():
    """While nothing changes but what nodes report a trace is asked for steps to come; after a change only for what has ended."""

    class Asked(SeriesTrace):
        def rate(self, at, length):
            asked.append((at - START) // seconds(15))
            return super().rate(at, length)

    asked = []
    trace = Asked([10.0] * 1000, step=seconds(15), start=START, name="t")
    world = World(make_service(trace=trace)).put(make_pod())
    for step in range(1, 41):
        world.nodes.put(("", "n1"), make_node("n1"))
        world.to(15 * step)
    assert asked[-1] > 40
    assert asked == sorted(set(asked)), "each is asked for once"
    asked.clear()
    world.put(make_pod("q", started=parse_rfc3339("2026-03-02T00:10:00Z")))
    world.to(15 * 41)
    assert asked == [40]
