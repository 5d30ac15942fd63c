"""Events written for people: counted up, cut off, never worth a failed decision."""

from __future__ import annotations

from kubetide.acting import EventWriter, in_parallel
from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import EVENTS
from kubetide.ports.errors import Unavailable
from kubetide.runtime.clock import run_virtual
from kubetide.units.time import minutes, parse_rfc3339, seconds

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


def test_a_flood_is_cut_off_and_fills_up_again():
    """An object gets 25 events at once, then one every five minutes; another object is not affected."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        for number in range(30):
            await writer.emit(WEB, "Warning", "Failed", f"attempt {number}")
        await writer.emit(NODE, "Normal", "Fine", "all well")
        first = len((await cluster.list(EVENTS)).items), writer.dropped
        await clock.sleep(minutes(5))
        await writer.emit(WEB, "Warning", "Failed", "later")
        await writer.emit(WEB, "Warning", "Failed", "too much again")
        return first, len((await cluster.list(EVENTS)).items), writer.dropped

    assert run(main) == ((26, 5), 27, 6)


def test_an_event_that_is_gone_is_written_anew():
    """When the event to be counted up was deleted, a new one takes its place."""

    async def main(cluster, clock):
        writer = EventWriter(cluster, clock, "tester")
        await writer.emit(WEB, "Normal", "Scaled", "to 3")
        [event] = (await cluster.list(EVENTS)).items
        await cluster.delete(EVENTS, event.metadata.name, namespace="default")
        await writer.emit(WEB, "Normal", "Scaled", "to 3")
        return [event.count for event in (await cluster.list(EVENTS)).items]

    assert run(main) == [1]


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


def test_work_in_parallel_keeps_order_and_bound():
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
