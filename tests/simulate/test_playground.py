"""Load and faults of a running cluster are changed: the loops answer, and the records say who did what."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import msgspec
import pytest
from tests.simulate.worlds import MANIFEST, small

from kubetide.ports.errors import AlreadyExists, ApiError, BadRequest, Conflict, MethodNotAllowed, NotFound
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.answers.status import status_of
from kubetide.simulate.answers.why import explain_object, objects_of
from kubetide.simulate.outcome.marks import MarkingRecorder
from kubetide.simulate.persisted import PersistedRun
from kubetide.simulate.playground.playground import Playground
from kubetide.simulate.scenarios.scenario import Scenario, start_of
from kubetide.simulate.scenarios.spec import FaultSpec
from kubetide.simulate.world import World
from kubetide.units.time import Duration, after, before, minutes


class Lesson:
    """A world that a story plays with, at times after its start."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.playground = Playground(world)
        self.refused: list[str] = []

    async def at(self, minute: float) -> None:
        """Wait until that many minutes after the start."""
        due = after(self.world.start, minutes(minute))
        await self.world.clock.sleep(Duration(max(due - self.world.clock.now(), 0)))

    async def load(self, service, requests):
        body = {"service": service, "requestsPerSecond": requests}
        return await self.playground.answer("PUT", "load", {}, body, "ann")

    async def inject(self, kind, **more):
        return await self.playground.answer("POST", "faults", {}, {"kind": kind, **more}, "ann")

    async def clear(self, **query):
        return await self.playground.answer("DELETE", "faults", query, None, "ann")

    @property
    def replicas(self) -> int:
        return self.world.timeline.services["web"].desired[-1]

    @property
    def nodes(self) -> int:
        return self.world.timeline.nodes["general"][-1]


def shop(**changes) -> Scenario:
    """Return a small scenario whose pods fill a node by threes."""
    manifest = MANIFEST.replace("cpu: 200m", "cpu: 600m")
    return msgspec.structs.replace(small(nodes=1), manifests=(manifest,), **changes)


def played(folder, story, scenario=None, *, minutes_long=40, state_before=None):
    """Play a story in a small world; return the lesson and the marks, with records in the folder."""
    scenario, marks, lessons = scenario or shop(), [], []

    async def main(clock):
        writer = RecordWriter(folder, warn=pytest.fail)
        writer.start()
        world = World(
            scenario,
            clock,
            base=folder,
            end=after(start_of(scenario), minutes(minutes_long)),
            seed=1,
            recorder=MarkingRecorder(writer, marks.append),
            persisted=state_before,
            served=True,
        )
        lesson = Lesson(world)
        lessons.append(lesson)
        async with lesson.playground:
            running = asyncio.get_running_loop().create_task(world.run())
            await story(lesson)
            await running
        writer.close()

    begin = before(start_of(scenario), minutes(3))
    run_virtual(main, start=begin if state_before is None else state_before.resumes_at or begin)
    assert lessons[0].world.violations() == []
    return lessons[0], marks


def test_replicas_follow_a_load_that_was_set(tmp_path):
    """Five times the load brings more pods and nodes, the scenario's load takes them away again."""
    seen = []

    async def story(lesson):
        await lesson.at(2)
        answer = await lesson.load("web", 240)
        assert answer["loads"][0]["setTo"] == 240
        await lesson.at(10)
        seen.append((lesson.world.timeline.services["web"].offered[-1], lesson.replicas, lesson.nodes))
        await lesson.load("default/web", None)
        await lesson.at(35)
        seen.append((lesson.world.timeline.services["web"].offered[-1], lesson.replicas, lesson.nodes))

    played(tmp_path, story)
    (load, many, more), (scenarios, few, fewer) = seen
    assert (load, many, more > 1) == (240, 6, True)
    assert scenarios == pytest.approx(40, rel=0.2)
    assert (few, fewer) == (2, 1)


def test_a_stock_out_stops_a_group_until_it_is_cleared(tmp_path):
    """Pods wait while no machine is available, the group backs off, and grows when the fault is over."""
    seen = []

    async def story(lesson):
        await lesson.at(1)
        answer = await lesson.inject("stock-out", group="general")
        assert [one["where"] for one in answer["active"]] == ["node group general"]
        await lesson.load("web", 300)
        await lesson.at(10)
        seen.append((lesson.nodes, lesson.world.timeline.pending[-1] > 0))
        assert (await lesson.clear(kind="stock-out"))["active"] == ()
        await lesson.at(25)
        seen.append((lesson.nodes > 1, lesson.world.timeline.pending[-1] > 0))

    _, marks = played(tmp_path, story, minutes_long=30)
    assert seen == [(1, True), (True, False)]
    assert any("InsufficientInstanceCapacity" in mark.title for mark in marks if mark.loop == "nodes")


def test_what_was_changed_is_recorded_and_explained(tmp_path):
    """Marks, replay, status and explain show who changed what, and when a fault was over."""

    async def story(lesson):
        await lesson.at(2)
        await lesson.load("web", 90.5)
        await lesson.inject("stock-out", group="general", **{"for": "3m"})
        await lesson.inject("api-error", probability=0.5)
        await lesson.at(8)
        assert [one["kind"] for one in (await lesson.clear())["active"]] == []

    _, marks = played(tmp_path, story, minutes_long=10)
    own = [(mark.title, mark.subject) for mark in marks if mark.loop == "playground"]
    assert own == [
        ("load of default/web set to 90.5 requests/s (it was 37.19) by ann", "default/web"),
        (
            "fault stock-out injected into node group general by ann, until 2026-03-02T00:05:00Z",
            "stock-out",
        ),
        ("fault api-error injected into the API server by ann, until it is cleared", "api-error"),
        ("fault stock-out of node group general is over", "stock-out"),
        ("fault api-error of the API server cleared by ann", "api-error"),
    ]
    again = replay(tmp_path)
    assert (again.records["playground"], again.differences, again.early_ends) == (5, (), ())
    assert "is over" in " ".join(one.text for one in status_of(tmp_path)[0].decisions)
    ask = partial(explain_object, tmp_path, namespace="default")
    assert "set to 90.5 requests/s, in the place of the scenario's" in ask("load", "web", at=None)
    assert "It is not injected at this time" in ask("fault", "stock-out", at=None)
    assert objects_of(tmp_path, None, ("load",)) == {"load": ["default/web"]}


def test_a_node_fails_and_comes_back(tmp_path):
    """The drawn node becomes NotReady at once, and Ready again when the fault is cleared."""
    seen = []

    async def story(lesson):
        await lesson.at(2)
        where = (await lesson.inject("node-failure", group="general"))["active"][0]["where"]
        seen.append(where.split()[1] in lesson.world.nodes.objects[("", where.split()[1])].metadata.name)
        await lesson.at(3)
        seen.append(lesson.nodes)
        await lesson.clear(kind="node-failure")
        await lesson.at(4)
        seen.append(lesson.nodes)

    played(tmp_path, story, small(nodes=3), minutes_long=6)
    assert seen == [True, 2, 3]


def test_watches_end_while_the_fault_lasts(tmp_path):
    """Each minute all watches end as expired; the loops go on, and nothing ends any more afterwards."""
    ends = []

    async def watched(lesson):
        from kubetide.objects.kinds import PODS

        while True:
            with suppress(ApiError):
                async for _ in lesson.world.cluster.watch(PODS, resource_version=""):
                    pass
            ends.append(lesson.world.clock.now() - lesson.world.start)

    async def story(lesson):
        await lesson.at(1)
        watch = asyncio.get_running_loop().create_task(watched(lesson))
        await lesson.inject("watch-expiry", **{"for": "2m30s"})
        await lesson.at(6)
        watch.cancel()

    played(tmp_path, story, minutes_long=8)
    assert len(ends) == 3


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "error", "text"),
    [
        ("PUT", "load", {}, {"service": "wbe", "requestsPerSecond": 1}, NotFound, "did you mean web?"),
        ("PUT", "load", {}, {"service": "web", "requestsPerSecond": -1}, BadRequest, "between 0 and"),
        ("PUT", "load", {}, {"service": "web", "requestsPerSecond": 1e30}, BadRequest, "between 0 and"),
        ("PUT", "load", {}, {"service": "web"}, BadRequest, "requestsPerSecond"),
        ("PUT", "load", {}, ["web"], BadRequest, "cannot be read"),
        ("PUT", "load", {}, None, BadRequest, "cannot be read"),
        ("POST", "load", {}, {}, MethodNotAllowed, "PUT"),
        ("POST", "faults", {}, {"kind": "stockout"}, NotFound, "did you mean stock-out?"),
        ("POST", "faults", {}, {"kind": "stock-out", "group": "genral"}, NotFound, "did you mean general?"),
        ("POST", "faults", {}, {"kind": "stock-out", "gruop": "general"}, BadRequest, "gruop"),
        ("POST", "faults", {}, {"kind": "api-error", "group": "general"}, BadRequest, "leave the node group"),
        ("POST", "faults", {}, {"kind": "api-error", "for": "soon"}, BadRequest, "not a duration"),
        ("POST", "faults", {}, {"kind": "api-error", "for": "0s"}, BadRequest, "not above 0"),
        ("POST", "faults", {}, {"kind": "api-error", "probability": 2}, BadRequest, "at most 1"),
        ("POST", "faults", {}, {"kind": "cloud-error"}, AlreadyExists, "clear it first"),
        ("POST", "faults", {}, {"kind": "node-failure", "probability": 0.5}, BadRequest, "for sure"),
        ("POST", "faults", {}, {"kind": "node-failure", "group": "empty"}, Conflict, "no Ready node"),
        ("DELETE", "faults", {"kind": "api-error"}, None, NotFound, "on: cloud-error of all node groups"),
        ("DELETE", "faults", {"kind": "cloud"}, None, NotFound, "did you mean cloud-error?"),
        ("PATCH", "faults", {}, None, MethodNotAllowed, "POST"),
        ("GET", "speed", {}, None, NotFound, "/kubetide/v1/load and /kubetide/v1/faults"),
    ],
)
def test_bad_requests_change_nothing(tmp_path, method, path, query, body, error, text):
    """A refusal names what is wrong and what would be right, and leaves no record."""

    async def story(lesson):
        await lesson.at(1)
        await lesson.inject("cloud-error")
        with pytest.raises(error) as refused:
            await lesson.playground.answer(method, path, query, body, "ann")
        lesson.refused.append(str(refused.value))

    scenario = small(nodes=1)
    empty = msgspec.structs.replace(scenario.node_groups[0], name="empty", min=0, initial=0)
    scenario = msgspec.structs.replace(scenario, node_groups=(*scenario.node_groups, empty))
    lesson, marks = played(tmp_path, story, scenario, minutes_long=1)
    assert text in lesson.refused[0]
    assert len([mark for mark in marks if mark.loop == "playground"]) == 1


def test_a_run_that_goes_on_has_what_was_changed(tmp_path):
    """With a folder of state a second start has the load, the faults and the node that failed, and can clear them."""
    scenario, seen = shop(), []

    async def first(lesson):
        await lesson.at(2)
        await lesson.load("web", 20)
        await lesson.inject("node-failure", group="general")
        await lesson.inject("stock-out", **{"for": "6m"})
        await lesson.at(3)

    async def second(lesson):
        await lesson.at(1)
        answer = await lesson.playground.answer("GET", "faults", {}, None, "ann")
        seen.append([(one["kind"], one["until"]) for one in answer["active"]])
        seen.append((lesson.world.timeline.services["web"].offered[-1], lesson.nodes))
        await lesson.clear(kind="node-failure")
        await lesson.at(8)
        answer = await lesson.playground.answer("GET", "faults", {}, None, "ann")
        seen.append((answer["active"], lesson.nodes))

    def state():
        end = after(start_of(scenario), minutes(60))
        return PersistedRun(tmp_path / "state", scenario.name, end)

    with state() as persisted:
        played(tmp_path / "one", first, scenario, minutes_long=4, state_before=persisted)
    with state() as persisted:
        _, marks = played(tmp_path / "two", second, scenario, minutes_long=14, state_before=persisted)
    assert seen[0] == [("node-failure", ""), ("stock-out", "2026-03-02T00:08:00Z")]
    assert seen[1][0] == 20
    assert (seen[1][1], seen[2]) == (0, ((), 1))
    (restored, *_) = [mark.title for mark in marks if mark.loop == "playground"]
    assert restored.startswith(
        "what was changed before goes on: loads default/web 20, faults node-failure of node"
    )
    assert replay(tmp_path / "two").differences == ()


def test_the_scenarios_faults_stay(tmp_path):
    """A fault of the scenario goes on beside what is injected and cleared."""
    seen = []

    async def story(lesson):
        await lesson.at(1)
        await lesson.inject("cloud-error")
        await lesson.clear()
        await lesson.load("web", 300)
        await lesson.at(6)
        seen.append(lesson.nodes)

    stock_out = FaultSpec(kind="stock-out", group="general")
    played(tmp_path, story, shop(faults=(stock_out,)), minutes_long=7)
    assert seen == [1]
