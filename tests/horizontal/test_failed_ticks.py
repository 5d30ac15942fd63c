"""Ticks that end with a bug: the next one begins anew, and nothing is lost."""

from __future__ import annotations

import msgspec
from tests.horizontal.running import World, play

from kubetide.explain.records import Record
from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.options.annotations import CALENDAR, FORECAST
from kubetide.horizontal.state import State
from kubetide.objects.kinds import HPAS
from kubetide.testing import builders
from kubetide.units.time import seconds


def one_bug(monkeypatch, when):
    """Let the first tick fail whose state and change ``when`` holds for; return a list that then holds the change."""
    real, failed = State.applying, []

    def applying(state, delta):
        if not failed and when(state, delta):
            failed.append(delta)
            raise RuntimeError("a bug")
        return real(state, delta)

    monkeypatch.setattr(State, "applying", applying)
    return failed


def test_a_tick_after_a_bug_knows_everything_and_its_record_is_full(monkeypatch):
    """Changes that the failed tick had taken from the caches are read again; memory stays; records replay."""
    failed = one_bug(monkeypatch, lambda state, delta: len(delta.hpas) == 1 and state.views)

    async def story(world: World):
        world.usage.milli = 100
        await world.add("first", replicas=2)
        async with world.running():
            await world.clock.sleep(seconds(16))
            before = world.controller.state.recommendations.of(("default", "first"))
            assert before
            await world.add("second", replicas=2)
            await world.clock.sleep(seconds(15))
            assert failed
            await world.clock.sleep(seconds(15))
            assert world.controller.health.bugs == 1
            world.controller.health.bugs = 0
            assert sorted(world.controller.state.views) == [("default", "first"), ("default", "second")]
            assert world.controller.state.recommendations.of(("default", "first"))[0] == before[0]
        records = [msgspec.json.decode(line, type=Record) for line in world.recorder.lines]
        core = HorizontalCore()
        for record in records:
            core.apply(bytes(record.state), full=record.full)
            assert core.decide(record.now) == bytes(record.commands)
            assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)
        assert records[1].full

    play(story)


def test_an_hpa_that_went_in_a_failed_tick_is_forgotten(monkeypatch):
    """Its selector does not make the HPA in its place ambiguous, and its replicas are no longer announced."""
    failed = one_bug(monkeypatch, lambda _, delta: delta.gone_hpas)

    async def story(world: World):
        world.usage.milli = 200
        await world.add("web", replicas=2)
        async with world.running():
            await world.clock.sleep(seconds(16))
            await world.cluster.delete(HPAS, "web", namespace="default")
            await world.cluster.create(HPAS, builders.hpa("other", "web"), namespace="default")
            await world.clock.sleep(seconds(30))
            assert failed
            world.controller.health.bugs = 0
            reasons = [condition.reason for condition in (await world.hpa("other")).status.conditions]
            assert "ValidMetricFound" in reasons
            assert world.controller.state.remembered() == {("default", "other")}

    play(story)


def test_what_was_learned_for_forecasts_outlives_a_bug(monkeypatch):
    """A forecast is learned over days; a tick that ends with a bug does not begin it anew."""
    known_before = []

    def has_learned(state, _):
        if not state.views or not state.forecasts.keys() or state.recommendations.count.max() <= 8:
            return False
        known_before.append(state.forecasts.dump(("default", "web")))
        return True

    failed = one_bug(monkeypatch, has_learned)

    async def story(world: World):
        world.usage.milli = 100
        await world.add("web", replicas=2, extra={"metadata": {"annotations": {FORECAST: CALENDAR}}})
        async with world.running():
            while not failed:
                await world.clock.sleep(seconds(15))
            world.controller.health.bugs = 0
            known = world.controller.state.forecasts
            assert known.dump(("default", "web")) == known_before[0]
            await world.clock.sleep(seconds(15))
            assert known.dump(("default", "web")).learns_from == known_before[0].learns_from

    play(story)
