"""Ticks between two others, for HPAs that are new or have a new spec: as Kubernetes 1.37, which does not let them wait."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import MemoryRecorder, play

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.state import Delta
from kubetide.objects.kinds import HPAS
from kubetide.units.time import Instant, minutes, seconds

OLD, NEW = ("default", "old"), ("default", "new")
LATER = Instant(worlds.NOW + seconds(5))


def state_with_old(milli=100):
    """A state that has decided about one HPA, ``old``, with the target of 50 % of 200m, in a regular tick."""
    state = worlds.state_of(
        hpas=[worlds.hpa("old")],
        pods=[worlds.pod("old-0", app="old")],
        scales=[worlds.scale("old", replicas=1)],
        usage={("default", "old-0"): milli},
    )
    absorb(state, decide(state, worlds.NOW), ())
    return state


def early(*, pods=1, **changes):
    """What is gathered when ``new`` has come: its pods use 200m each, of 200m."""
    names = [f"new-{index}" for index in range(pods)]
    usage = worlds.answer({("default", name): 200 for name in names})
    return Delta(
        hpas=[worlds.hpa("new")],
        pods=[worlds.pod(name, app="new") for name in names],
        scales=[worlds.scale("new", replicas=pods)],
        answers=[msgspec.structs.replace(usage, hpa=NEW)],
        early=[NEW],
        **changes,
    )


# ── deciding ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pods", [1, 300])
def test_the_others_wait(pods):
    """Nothing is decided about the others, written to them or remembered of them, in columns or one by one."""
    state = state_with_old(milli=200)
    status, memory = state.statuses[OLD], state.recommendations.of(OLD)
    state.apply(early(pods=pods))
    commands = decide(state, LATER)
    assert [(write.name, write.replicas) for write in commands.writes] == [("new", min(2 * pods, 100))]
    result = absorb(state, commands, ())
    waiting = next(one for one in result.settlements if one.verdict.key == OLD)
    assert waiting.is_quiet
    assert (waiting.verdict.stage, waiting.desired) == ("waiting", None)
    assert state.statuses[OLD] is status
    assert state.recommendations.of(OLD) == memory


def test_the_next_tick_is_for_all():
    """After it all are decided about, as if nothing had been in between."""
    state, plain = state_with_old(), state_with_old()
    state.apply(early())
    absorb(state, decide(state, LATER), ())
    now = Instant(worlds.NOW + seconds(15))
    usage = worlds.answer({("default", "old-0"): 200, ("default", "new-0"): 200})
    found = []
    for one in (state, plain):
        one.apply(Delta(answers=[usage]))
        verdicts = {verdict.key: verdict for verdict in decide(one, now).verdicts}
        found.append((verdicts[OLD].stage, verdicts[OLD].desired, verdicts[OLD].raw))
    assert found[0] == found[1] == ("decided", 2, 2)


@pytest.mark.parametrize("pods", [1, 40])
def test_the_others_keep_what_was_measured(pods):
    """The explanation of another HPA stays what it was, also where the new one brings more pods than there was room for."""
    state = state_with_old(milli=130)
    external = worlds.external({"averageValue": "10"})
    asking = msgspec.structs.replace(worlds.hpa("queue", metrics=[external]))
    reply = Reply(("external", "default", "queue", ""), milli=np.array([25_000]))
    usage = worlds.answer({("default", "old-0"): 130})
    state.apply(
        Delta(hpas=[asking], scales=[worlds.scale("queue", replicas=1)], answers=[usage], values=[reply])
    )
    absorb(state, decide(state, worlds.NOW), ())
    before = [explain(state, ("default", name), LATER).lines() for name in ("old", "queue")]
    state.apply(early(pods=pods))
    decide(state, LATER)
    assert [explain(state, ("default", name), LATER).lines() for name in ("old", "queue")] == before
    assert "130m" in "".join(before[0]) or "65%" in "".join(before[0])


def test_a_new_answer_replaces_the_last():
    """Of the HPA itself nothing is left of what was measured for the last tick: neither samples nor an error."""
    state = state_with_old(milli=130)
    gone = msgspec.structs.replace(worlds.answer({}), hpa=OLD)
    state.apply(Delta(answers=[gone], early=[OLD]))
    assert state.samples.sample_at(int(state.table.members_of(OLD)[0]), ("cpu", "")) is None
    failed = msgspec.structs.replace(gone, error="it is down")
    state.apply(Delta(answers=[failed]))
    assert state.samples.error_of(OLD) == "it is down"
    state.apply(Delta(answers=[gone], early=[OLD]))
    assert state.samples.error_of(OLD) is None


# ── the loop ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "at_once"),
    [
        ({"kubernetes_version": "1.36"}, 2),
        ({"kubernetes_version": "1.36", "immediate_sync": True}, 4),
        ({"kubernetes_version": "1.37"}, 4),
    ],
)
def test_a_new_hpa(settings, at_once):
    """It is decided about at once with 1.37, and with the next tick with 1.36 unless asked for; that comes at its time."""

    async def story(world):
        await world.add("old")
        async with world.running():
            await world.clock.sleep(seconds(18))
            world.usage.milli = 200
            world.usage.questions.clear()
            await world.add("new")
            await world.clock.sleep(seconds(1))
            assert (await world.replicas("new"), await world.replicas("old")) == (at_once, 2)
            assert world.usage.questions == ([("default", "app=new")] if at_once == 4 else [])
            await world.clock.sleep(seconds(12))
            assert (await world.replicas("new"), await world.replicas("old")) == (4, 4)
        return [msgspec.json.decode(line)["now"] for line in world.recorder.lines]

    times = play(story, **settings)
    assert [(time - times[0]) // seconds(1) for time in times] == (
        [0, 15, 18, 30] if at_once == 4 else [0, 15]
    )


def test_a_new_spec():
    """A generation is what makes a spec new: another status, label or annotation waits."""

    async def story(world):
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
            before = len(world.recorder.lines)
            for changed in ({"labels": {"a": "b"}}, {"annotations": {"a": "b"}}):
                await world.cluster.patch(HPAS, "web", {"metadata": changed}, namespace="default")
            await world.clock.sleep(seconds(1))
            assert len(world.recorder.lines) == before
            store, key = world.store, ("default", "web")
            # What a server of 1.37 stores; the embedded one is older, and counts no generations of HPAs.
            json = store.get(HPAS, key).json
            newer = {
                "metadata": {**json["metadata"], "generation": 2},
                "spec": {**json["spec"], "minReplicas": 3},
            }
            store.put(HPAS, key, {**json, **newer})
            await world.clock.sleep(seconds(1))
            assert len(world.recorder.lines) == before + 1
            assert await world.replicas() == 3

    play(story, kubernetes_version="1.37")


def test_a_new_spec_where_none_are_counted():
    """Servers before 1.37 count no generations of HPAs: the spec itself is compared."""

    async def story(world):
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
            await world.cluster.patch(HPAS, "web", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
            await world.clock.sleep(seconds(1))
            assert await world.replicas() == 2
            await world.cluster.patch(HPAS, "web", {"spec": {"minReplicas": 3}}, namespace="default")
            await world.clock.sleep(seconds(1))
            assert await world.replicas() == 3

    play(story, kubernetes_version="1.36", immediate_sync=True)


def test_one_that_another_controller_serves():
    """It is left alone, and the others are not decided about because of it."""

    class Others:
        def left_alone(self):
            return [NEW]

        def why(self, key):
            return "another writes its status"

        def knows(self, key):
            return True

    async def story(world):
        await world.add("old")
        async with world.running():
            await world.clock.sleep(seconds(16))
            world.usage.milli = 200
            await world.add("new")
            await world.clock.sleep(seconds(1))
            assert (await world.replicas("new"), await world.replicas("old")) == (2, 2)
            assert world.controller.state.early in (frozenset(), None)

    play(story, kubernetes_version="1.37", owners=Others())


def test_a_record_that_must_hold_the_whole_state():
    """Then the tick is for all HPAs."""

    async def story(world):
        await world.add("old")
        async with world.running():
            await world.clock.sleep(seconds(31))
            assert world.recorder.wants_full("horizontal")
            world.usage.milli = 200
            await world.add("new")
            await world.clock.sleep(seconds(1))
            assert (await world.replicas("new"), await world.replicas("old")) == (4, 4)

    play(story, kubernetes_version="1.37")


def test_records_decide_the_same():
    """Records of such ticks are decided again byte by byte, and no state is lost between them."""

    async def story(world):
        world.measured.answers = {("external", "default", "queue", ""): [25_000]}
        await world.add("old")
        async with world.running():
            for number in range(6):
                world.usage.milli = 60 + 40 * number
                metrics = [worlds.external({"averageValue": "10"})] if number % 2 else None
                extra = {"extra": {"spec": {"metrics": metrics}}} if metrics else {}
                await world.clock.sleep(seconds(11))
                await world.add(f"new-{number}", **extra)
            await world.clock.sleep(minutes(1))
        return world.recorder

    recorder = play(story, kubernetes_version="1.37")
    assert isinstance(recorder, MemoryRecorder)
    core, early_ones = HorizontalCore(), 0
    for line in recorder.lines:
        record = msgspec.json.decode(line)
        early_ones += "early" in record["state"]
        core.apply(msgspec.json.encode(record["state"]), full=record.get("full", False))
        assert core.decide(record["now"]) == msgspec.json.encode(record["commands"])
        result = core.absorb(msgspec.json.encode(record["outcomes"]), record["now"])
        assert result == msgspec.json.encode(record["result"])
    assert early_ones >= 3
