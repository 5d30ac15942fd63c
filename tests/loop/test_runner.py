"""When loops tick, who waits for whom, and the outcome of a tick that fails."""

from __future__ import annotations

import asyncio

import pytest
from tests.tasks import stop

from kubetide.loop import BaseLoop, UnknownLoop, loop_entry, loop_names, parse_flags
from kubetide.loop.runner import Runner
from kubetide.ports.errors import CloudError, Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import after, between, format_duration, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T12:00:00Z")


class Ticking(BaseLoop):
    """Notes when it ticks; ``work`` does something in each tick."""

    name = "ticking"
    period = seconds(10)

    def __init__(self, clock, work=None, *, at_once=True, wakes=()):
        super().__init__()
        self.clock, self.work, self.ticks_at_once = clock, work, at_once
        self.seen, self.wakes, self.restarts = [], list(wakes), 0

    def note(self, what="tick"):
        self.seen.append(f"{what} {format_duration(between(START, self.clock.now()))}")

    async def synced(self):
        pass

    async def tick(self):
        self.note()
        if self.work is not None:
            await self.work(len(self.seen))

    def next_wake(self):
        return self.wakes[0] if self.wakes else None

    async def wake(self):
        self.wakes.pop(0)
        self.note("wake")

    def start_anew(self):
        self.restarts += 1


MINUTE = seconds(55)


def ran(make, *, lasts=MINUTE):
    """Run the loops that ``make`` returns; return the last of them."""

    async def main(clock):
        runners = make(clock)
        tasks = [asyncio.create_task(one.run()) for one in runners]
        await clock.sleep(lasts)
        for task in tasks:
            await stop(task)
        return runners[-1].loop

    return run_virtual(main, start=START)


def test_ticks_do_not_drift():
    """A loop ticks at once, or a period later, and then every period from there."""
    now = ran(lambda clock: [Runner(Ticking(clock), clock)], lasts=seconds(35))
    assert now.seen == ["tick 0s", "tick 10s", "tick 20s", "tick 30s"]
    later = ran(lambda clock: [Runner(Ticking(clock, at_once=False), clock)], lasts=seconds(35))
    assert later.seen == ["tick 10s", "tick 20s", "tick 30s"]


def test_of_missed_ticks_one_is_made_up_for():
    """A tick of 25 s is followed by one at once, and then by those that are due."""

    def make(clock):
        async def slow(number):
            if number == 1:
                await clock.sleep(seconds(25))

        return [Runner(Ticking(clock, slow), clock)]

    assert ran(make, lasts=seconds(45)).seen == ["tick 0s", "tick 25s", "tick 30s", "tick 40s"]


@pytest.mark.parametrize(("told", "seen", "ended"), [(12, ["tick 0s", "tick 10s"], 14), (7, ["tick 0s"], 7)])
def test_who_is_told_to_finish_ends_its_tick_and_begins_no_other(told, seen, ended):
    """A tick of 4 s comes to its end; where none is under way, there is nothing to wait for."""

    async def main(clock):
        loop = Ticking(clock, lambda _: clock.sleep(seconds(4)))
        runner = Runner(loop, clock)
        task = asyncio.create_task(runner.run())
        await clock.sleep(seconds(told))
        await runner.finish()
        assert between(START, clock.now()) == seconds(ended)
        await clock.sleep(seconds(30))
        assert task.done(), "it ends by itself"
        return loop.seen

    assert run_virtual(main, start=START) == seen


def test_what_is_under_way_wakes_the_loop_between_ticks():
    """A wake that is due before the next tick comes first."""
    wakes = [after(START, seconds(3)), after(START, seconds(12))]
    loop = ran(lambda clock: [Runner(Ticking(clock, wakes=wakes), clock)], lasts=seconds(25))
    assert loop.seen == ["tick 0s", "wake 3s", "tick 10s", "wake 12s", "tick 20s"]


def test_a_tick_that_was_asked_for_asks_for_no_other():
    """A loop that is hurried while it rests until now ticks once for that, and then goes on as it would have."""

    class Hurried(Ticking):
        hurries = 1

        def next_wake(self):
            if self.hurries:
                self.hurries -= 1
                asyncio.get_running_loop().call_soon(self.eager.set)
            return super().next_wake()

    def make(clock):
        async def slow_if_many(number):
            if number > 10:
                await clock.sleep(seconds(1))

        loop = Hurried(clock, slow_if_many, wakes=[START, after(START, seconds(3))])
        loop.eager = asyncio.Event()
        return [Runner(loop, clock)]

    seen = ran(make, lasts=seconds(15)).seen
    assert seen == ["tick 0s", "tick 0s", "wake 0s", "wake 3s", "tick 10s"]


@pytest.mark.parametrize(
    ("restarts", "seen"),
    [
        (False, ["tick 0s", "tick 3s", "tick 10s", "tick 20s"]),
        (True, ["tick 0s", "tick 3s", "tick 13s", "tick 23s"]),
    ],
)
def test_a_period_may_begin_anew_with_an_early_tick(restarts, seen):
    """The tick after an early one keeps its time, or where the loop says so comes a period later."""

    def make(clock):
        loop = Ticking(clock)
        loop.eager, loop.early_restarts_period = asyncio.Event(), restarts
        asyncio.get_running_loop().call_later(3, loop.eager.set)
        return [Runner(loop, clock)]

    assert ran(make, lasts=seconds(25)).seen == seen


def test_failures_are_reported_apart_and_only_a_bug_starts_anew():
    """Errors of the cloud and of the API server excuse a tick; anything else is a bug. The loop goes on."""

    def make(clock):
        async def failing(number):
            if number <= 3:
                raise (CloudError("no quota"), Unavailable("down"), KeyError("a bug"))[number - 1]

        return [Runner(Ticking(clock, failing), clock)]

    loop = ran(make)
    health = loop.health
    assert len(loop.seen) == 6
    assert (health.failures, health.cloud_failures, health.bugs, loop.restarts) == (3, 1, 1, 1)
    assert "KeyError" in health.last_failure
    assert health.last_excused == after(START, seconds(10))
    assert health.last_tick == after(START, seconds(50))


def test_who_reads_the_board_waits_for_who_announces_but_not_for_long():
    """A tick waits for another loop's tick of the same instant, for a second at most."""

    def make(clock):
        async def slow(number):
            await clock.sleep(seconds(1) // 2 if number == 1 else seconds(5))

        first = Runner(Ticking(clock, slow), clock)
        return [first, Runner(Ticking(clock), clock, waits_for=(first,))]

    assert ran(make, lasts=seconds(15)).seen == ["tick 500ms", "tick 11s"]


def test_a_loop_that_is_not_there_is_named_with_those_that_are():
    """The error lists all loops; flags of a loop that does not run are unknown."""
    with pytest.raises(UnknownLoop, match="there is no loop 'cron'; there are horizontal, nodes"):
        loop_entry("cron")
    assert loop_names()[:2] == ("horizontal", "nodes")
    assert parse_flags({"scan-interval": "20s"}, [loop_entry("nodes")]).by_name[
        "nodes"
    ].scan_interval == seconds(20)
