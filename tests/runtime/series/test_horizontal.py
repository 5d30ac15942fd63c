"""The series of the HPA loop, on an embedded cluster in virtual time."""

from __future__ import annotations

from math import isnan

import msgspec
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import START, MemoryRecorder, World, play
from tests.runtime.series.reading import read

from kubetide.explain.records import Record
from kubetide.horizontal.series import HorizontalSeries
from kubetide.objects.kinds import DEPLOYMENTS, HPAS
from kubetide.ports.errors import Conflict
from kubetide.runtime.series import ListeningRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.exposition import Registry
from kubetide.units.time import seconds

UPSTREAM = "horizontal_pod_autoscaler_controller_"
OURS = "kubetide_horizontal_"


class Scraped(World):
    """A world whose loop is listened to."""

    def __init__(self, clock, **settings):
        super().__init__(clock, **settings)
        self.registry = Registry()
        series = HorizontalSeries(self.registry, self.controller, clock)
        listening = ListeningRecorder(self.recorder, pytest.fail)
        listening.listen("horizontal", series.on_record)
        self.controller._recorder = listening

    def read(self, prefix=UPSTREAM):
        return read(self.registry, prefix)


def reported(story, **settings):
    return run_virtual(lambda clock: story(Scraped(clock, **settings)), start=START)


def test_a_scale_up_is_counted():
    """The tick that writes counts scale_up, the next one none; the gauges show the desired replicas."""

    async def story(world):
        await world.add("web", cpu_percent=25)
        await world.add("idle", cpu_percent=50, replicas=2)
        async with world.running():
            await world.clock.sleep(seconds(16))
            first = world.read()
            await world.clock.sleep(seconds(60))
            later = world.read()
        assert first["reconciliations_total", "scale_up", "none"] == 1
        assert first["reconciliations_total", "none", "none"] == 1
        # A computation is compared with the status that was there, in which a new HPA has no replicas.
        assert first["metric_computation_total", "scale_up", "none", "Resource"] == 2
        assert first["num_horizontal_pod_autoscalers",] == 2
        assert first["desired_replicas", "web", "default"] == await world.replicas() == 4
        assert first["desired_replicas", "idle", "default"] == 2
        for name in ("reconciliations_total", "reconciliation_duration_seconds_count"):
            counted = {key[1:]: number for key, number in later.items() if key[0] == name}
            assert sum(counted.values()) == 2 * 5

    reported(story)


def test_errors_are_counted_by_kind():
    """Without metrics, and without a target, a reconciliation fails inside; only the first computes metrics."""

    async def story(world):
        await world.add("web", cpu_percent=25)
        await world.cluster.create(HPAS, builders.hpa("lost", "gone"), namespace="default")
        world.usage.error = "no metrics today"
        async with world.running():
            await world.clock.sleep(seconds(16))
            found = world.read()
        assert found["reconciliations_total", "none", "internal"] == 2
        assert found["metric_computation_total", "none", "internal", "Resource"] == 1
        assert not any(name[0] == "desired_replicas" for name in found)
        assert isnan(world.read(OURS)["newest_sample_age_seconds",])

    reported(story)


def test_a_status_that_cannot_be_written_is_an_error():
    """A scale-up whose status is refused still has its action, and counts as an internal error."""

    class NoStatus:
        async def before(self, request):
            if request.subresource == "status":
                raise Conflict("the object has been modified")

    async def story(world):
        await world.add("web", cpu_percent=25)
        world.cluster.faults = NoStatus()
        async with world.running():
            await world.clock.sleep(seconds(16))
            found = world.read()
        assert await world.replicas() == 4
        assert found["reconciliations_total", "scale_up", "internal"] == 1

    reported(story)


def test_each_metric_shows_what_it_proposes():
    """Whatever the bounds make of it; a metric that fails proposes nothing, and neither does an HPA that is gone."""

    async def story(world):
        metrics = [worlds.utilization(25), worlds.external({"averageValue": "10"})]
        await world.add("web", max_replicas=3, extra={"spec": {"metrics": metrics}})
        async with world.running():
            await world.clock.sleep(seconds(16))
            blind = world.read(OURS)
            world.measured.answers["external", "default", "queue", ""] = [50_000]
            await world.clock.sleep(seconds(15))
            seeing = world.read(OURS)
            await world.cluster.delete(HPAS, "web", namespace="default")
            await world.clock.sleep(seconds(15))
            gone = world.read(OURS)
        names = [name for name in seeing if name[0] == "proposed_replicas"]
        cpu, queue = (
            ("proposed_replicas", "web", one, "default") for one in ("cpu utilization", "external queue")
        )
        assert blind[cpu] == seeing[cpu] == 4
        assert seeing[queue] == 5
        assert queue not in blind
        assert sorted(names) == [cpu, queue]
        assert cpu not in gone
        assert await world.replicas() == 3

    reported(story)


def test_flapping_is_shown_where_it_is_reported():
    """The changes of the last hour, and those against the one before; nothing of HPAs without the annotation."""

    async def story(world):
        flapping = {
            "metadata": {"annotations": {"horizontal.kubetide.io/flap-report": "true"}},
            "spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}},
        }
        await world.add("web", cpu_percent=25, extra=flapping)
        await world.add("quiet", cpu_percent=25)
        async with world.running():
            await world.clock.sleep(seconds(16))
            world.usage.milli = 10
            await world.clock.sleep(seconds(15))
            found = world.read(OURS)
        assert found["recent_changes", "web", "default"] == 2
        assert found["recent_reversals", "web", "default"] == 1
        assert ("recent_changes", "quiet", "default") not in found

    reported(story)


def test_a_deleted_hpa_leaves_the_page():
    """The number of HPAs goes down, and the desired replicas of the deleted one are not shown any more."""

    async def story(world):
        await world.add("web", cpu_percent=25)
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert ("desired_replicas", "web", "default") in world.read()
            await world.cluster.delete(HPAS, "web", namespace="default")
            await world.clock.sleep(seconds(15))
            found = world.read()
        assert found["num_horizontal_pod_autoscalers",] == 0
        assert ("desired_replicas", "web", "default") not in found

    reported(story)


def test_the_newest_sample_ages():
    """The age is counted until the scrape: samples are 5 s old when the tick reads them."""

    async def story(world):
        await world.add("web", cpu_percent=25)
        async with world.running():
            await world.clock.sleep(seconds(15))
            await world.clock.sleep(seconds(4))
            found = world.read(OURS)
        assert found["newest_sample_age_seconds",] == 5 + 4
        assert found["tick_duration_seconds_count",] == 1
        assert found["tick_failures_total",] == 0

    reported(story)


def test_listening_changes_no_record():
    """The records are those of a loop that nobody listens to."""

    async def story(world):
        await world.add("web", cpu_percent=25)
        async with world.running():
            await world.clock.sleep(seconds(50))
        assert (await world.cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas > 2
        return world.recorder.lines

    assert reported(story) == play(story)


def test_each_listener_gets_the_records_of_its_own_loop():
    """A record is stored first, and passed to the listeners of that loop only."""
    stored, received = MemoryRecorder(), []
    recorder = ListeningRecorder(stored, pytest.fail)
    recorder.listen("nodes", lambda record: received.append((record.tick, len(stored.lines))))
    for tick, loop in enumerate(("horizontal", "nodes", "nodes")):
        recorder.write(Record(loop=loop, tick=tick, now=START))
    assert received == [(1, 2), (2, 3)]
    assert [msgspec.json.decode(line)["loop"] for line in stored.lines] == ["horizontal", "nodes", "nodes"]
    assert recorder.wants_full("nodes") is True


def test_a_listener_that_fails_stops_nothing():
    """Its bug is reported once, records are still stored, and it is not called any more."""
    stored, said, reported_of = MemoryRecorder(), [], []

    def failing(record):
        reported_of.append(record.tick)
        raise ValueError("a bug")

    recorder = ListeningRecorder(stored, said.append)
    recorder.listen("nodes", failing)
    for tick in range(3):
        recorder.write(Record(loop="nodes", tick=tick, now=START))
    assert (len(stored.lines), reported_of) == (3, [0])
    [text] = said
    assert text.startswith("the series of the nodes loop stand still: ")
    assert text.endswith("ValueError: a bug")
