"""Events written for people: counted up, cut off, never worth a failed decision."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubetide.acting import EventWriter, in_parallel
from kubetide.acting.correlating import Correlator
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import EVENTS, PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Instant, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
WEB = ObjectReference(api_version="v1", kind="Pod", namespace="default", name="web", uid="u")
NODE = ObjectReference(api_version="v1", kind="Node", name="n1", uid="n")


def run(main):
    async def inside(clock):
        cluster = EmbeddedCluster(Store(), clock, 1)
        return await main(cluster, clock)

    return run_virtual(inside, start=START)


def test_equal_events_are_counted_up():
    """The same event three times is one object with count 3 and the last time."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for _ in range(3):
            await writer.emit(WEB, "Normal", "Scaled", "to 3")
            await clock.sleep(seconds(10))
        await writer.emit(WEB, "Normal", "Scaled", "to 4")
        return (await cluster.list(EVENTS, namespace="default")).items

    events = sorted(run(main), key=lambda event: event.message)
    assert [(event.message, event.count) for event in events] == [("to 3", 3), ("to 4", 1)]
    assert events[0].last_timestamp == "2026-03-02T00:00:20Z"
    assert events[0].source.component == "tester"


def test_too_many_events_of_an_object_are_dropped_until_its_allowance_fills_up():
    """An object gets 25 events at once, then one every five minutes; another object is not affected."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for number in range(30):
            await writer.emit(WEB, "Warning", f"Failed{number}", "again")
        await writer.emit(NODE, "Normal", "Fine", "all well")
        first = len((await cluster.list(EVENTS)).items), writer.dropped
        await clock.sleep(minutes(5))
        await writer.emit(WEB, "Warning", "Late", "later")
        await writer.emit(WEB, "Warning", "Late", "too much again")
        return first, len((await cluster.list(EVENTS)).items), writer.dropped

    assert run(main) == ((26, 5), 27, 6)


def test_similar_events_become_one():
    """From the tenth message on, one event counts for all further ones and has the newest message."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for number in range(12):
            await writer.emit(WEB, "Warning", "Failed", f"attempt {number}")
            await clock.sleep(minutes(4))
        await writer.emit(WEB, "Warning", "Failed", "attempt 3")
        await writer.emit(WEB, "Warning", "Other", "attempt 99")
        await writer.emit(NODE, "Warning", "Failed", "attempt 99")
        return (await cluster.list(EVENTS, namespace="default")).items

    found = sorted((event.reason, event.message, event.count) for event in run(main))
    single = [("Failed", f"attempt {number}", 2 if number == 3 else 1) for number in range(9)]
    assert found == sorted(
        [
            *single,
            ("Failed", "(combined from similar events): attempt 11", 3),
            ("Failed", "attempt 99", 1),
            ("Other", "attempt 99", 1),
        ]
    )


def test_what_is_similar_is_forgotten():
    """After more than ten minutes without one, similar events are reported one by one again."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for number in range(10):
            await writer.emit(WEB, "Warning", "Failed", f"attempt {number}")
        await clock.sleep(minutes(10) + seconds(1))
        await writer.emit(WEB, "Warning", "Failed", "attempt 10")
        return (await cluster.list(EVENTS, namespace="default")).items

    messages = {event.message for event in run(main)}
    assert "attempt 10" in messages
    assert "(combined from similar events): attempt 9" in messages


def test_a_deleted_event_is_written_anew():
    """When the event to be counted up was deleted, it is made again and its count goes on, as upstream's does."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        await writer.emit(WEB, "Normal", "Scaled", "to 3")
        [event] = (await cluster.list(EVENTS)).items
        await cluster.delete(EVENTS, event.metadata.name, namespace="default")
        await clock.sleep(seconds(10))
        await writer.emit(WEB, "Normal", "Scaled", "to 3")
        return (await cluster.list(EVENTS)).items, event.metadata.name

    [event], name = run(main)
    assert (event.metadata.name, event.count) == (name, 2)
    assert (event.first_timestamp, event.last_timestamp) == ("2026-03-02T00:00:00Z", "2026-03-02T00:00:10Z")


def test_what_is_dropped_is_counted():
    """The next event that is written counts those that were dropped."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for _ in range(40):
            await writer.emit(WEB, "Normal", "Scaled", "to 3")
        await clock.sleep(minutes(5))
        await writer.emit(WEB, "Normal", "Scaled", "to 3")
        return [
            (event.count, event.last_timestamp) for event in (await cluster.list(EVENTS)).items
        ], writer.dropped

    assert run(main) == ([(41, "2026-03-02T00:05:00Z")], 15)


def test_equal_events_at_once_are_one():
    """Events that are written side by side over a slow network are counted, not made twice."""

    async def main(cluster, clock):
        writer = EventWriter(cluster.client(faults=Slow()), clock, "tester")
        await asyncio.gather(*(writer.emit(WEB, "Normal", "Scaled", "to 3") for _ in range(5)))
        return [event.count for event in (await cluster.list(EVENTS)).items], writer.dropped

    assert run(main) == ([5], 0)


class Slow:
    """A network on which a request takes a fifth of a second."""

    async def before(self, _request):
        await asyncio.sleep(0.2)


def many(count):
    """Return that many events, each on an object of its own."""
    return [(replace(WEB, name=f"web-{at:04}"), "Normal", "Scaled", "to 3") for at in range(count)]


def test_many_events_hold_up_nobody():
    """Whoever has many events goes on after a second; the others are written in their order, and later ones after them."""

    async def main(cluster, clock):
        writer = EventWriter(cluster.client(faults=Slow()), clock, "tester")
        begun, steps = clock.now(), []
        for events in (many(20), [(NODE, "Normal", "Fine", "all well")]):
            await writer.emit_all(events)
            steps.append((clock.now() - begun, len((await cluster.list(EVENTS)).items)))
        await clock.sleep(seconds(10))
        found = (await cluster.list(EVENTS)).items
        await writer.emit_all(many(1))
        return steps, [event.involved_object.name for event in sorted(found, key=by_version)], writer.dropped

    def by_version(event):
        return int(event.metadata.resource_version)

    steps, names, dropped = run(main)
    assert steps == [(seconds(1), 4), (seconds(1), 4)]
    assert names == [*(about.name for about, *_ in many(20)), "n1"]
    assert dropped == 0


def test_a_thousand_events_may_wait():
    """What is more is dropped and counted, and so is what still waits at the end."""

    async def main(cluster, clock):
        writer = EventWriter(cluster.client(faults=Slow()), clock, "tester")
        await writer.emit_all(many(1200))
        dropped = writer.dropped
        await writer.close()
        written = len((await cluster.list(EVENTS)).items)
        await clock.sleep(minutes(5))
        return dropped, writer.dropped + written, len((await cluster.list(EVENTS)).items) - written

    assert run(main) == (200, 1200, 0)


def test_an_object_at_hand():
    """An event says of its object what it is, and at which version."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for name in ("a", "a"):
            meta = ObjectMeta(name=name, namespace="default", uid="u", resource_version=str(clock.now()))
            await writer.record(PODS, meta, "Normal", "Scheduled", "there")
            await clock.sleep(seconds(1))
        return (await cluster.list(EVENTS)).items

    [event] = run(main)
    assert event.count == 2, "a new version is no new object"
    assert event.involved_object == ObjectReference(
        api_version="v1", kind="Pod", namespace="default", name="a", uid="u", resource_version=str(START)
    )


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 14), st.integers(0, 400)),
        max_size=150,
    )
)
def test_no_event_is_lost_or_reported_twice(steps):
    """Counts add up to what came; an object never passes its allowance; names belong to one event each."""
    correlator, now, counts, written, came = Correlator(), START, {}, {}, {}
    for number, (name, reason, message, pause) in enumerate(steps):
        now = Instant(now + seconds(pause))
        about = ObjectReference(kind="Pod", name=name, uid=name)
        came[name, reason] = came.get((name, reason), 0) + 1
        event = correlator.take(about, "Normal", reason, str(message), name=f"e{number}", now=now)
        if event is None:
            continue
        written.setdefault(name, []).append(now)
        assert event.name == f"e{number}" or not event.is_new
        before = counts.get(event.name)
        assert before is None or before < event.count
        counts[event.name] = event.count
        assert event.last == now >= event.first
    assert sum(counts.values()) <= len(steps)
    for times in written.values():
        for first, last in zip(times, times[26:], strict=False):
            assert last - first >= minutes(5), "26 in store at most, as one may fall due meanwhile"


def test_a_refusing_server_costs_the_event_only():
    """An event that the server refuses is dropped and counted; nothing is raised."""

    class Refuse:
        async def before(self, request):
            raise Unavailable("down")

    async def main(cluster, clock):
        writer = EventWriter(cluster.client(faults=Refuse()), clock, "tester")
        await writer.emit(WEB, "Normal", "Scaled", "to 3")
        return writer.dropped

    assert run(main) == 1


def test_work_in_parallel_has_order_and_bound():
    """No more than the limit is under way at once, and the answers come in the items' order."""

    async def main(_cluster, clock):
        under_way, most = 0, 0

        async def work(item):
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await clock.sleep(seconds(10 - item))
            under_way -= 1
            return item * 2

        return await in_parallel(range(7), work, limit=3), most

    assert run(main) == ([0, 2, 4, 6, 8, 10, 12], 3)
