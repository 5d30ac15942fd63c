"""Writes that hang: who waits for them, and what becomes of them."""

from __future__ import annotations

import asyncio

import pytest

from kubetide.acting import BackgroundWrites, Unfinished
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
UNDER_WAY, PUT_OFF = Unfinished.UNDER_WAY, Unfinished.PUT_OFF


class Server:
    """Answers each write after so many seconds; notes which have begun."""

    def __init__(self, **delays):
        self.delays, self.begun = delays, []

    async def write(self, item):
        self.begun.append(item)
        delay = self.delays.get(item, 0.1)
        await asyncio.sleep(delay)
        if delay < 0:
            raise AssertionError(f"a bug of {item}")
        return f"{item} is written"


def run(server, main, *, limit=2, key=lambda item: item):
    async def inside(clock):
        writes = BackgroundWrites(server.write, key, limit=limit)
        try:
            return await main(writes, clock)
        finally:
            await writes.close()

    return run_virtual(inside, start=START)


def test_a_write_that_hangs_holds_up_nobody():
    """The other writes are made, the step ends after three seconds, and the outcome comes when it is there."""

    async def main(writes, clock):
        first = await writes.carry_out(["a", "b", "c"])
        took = clock.now() - START
        again = await writes.carry_out(["a", "c"])
        none_yet = writes.ended()
        await clock.sleep(seconds(20))
        return first, took, again, none_yet, writes.ended(), writes.ended(), await writes.carry_out(["a"])

    server = Server(a=20)
    first, took, again, none_yet, ended, later, anew = run(server, main)
    assert first == [UNDER_WAY, "b is written", "c is written"]
    assert took == seconds(3)
    assert again == [UNDER_WAY, "c is written"], "no second write of one object at a time"
    assert (none_yet, ended, later) == ([], [("a", "a is written")], [])
    assert anew == [UNDER_WAY], "it begins anew once the outcome was taken"
    assert server.begun == ["a", "b", "c", "c", "a"]


def test_writes_of_one_object_keep_their_order():
    """They are made one after another beside those of other objects; behind one that hangs none begins."""

    async def main(writes, clock):
        found = await writes.carry_out(["a1", "a2", "b1", "a3", "b2"])
        return found, clock.now() - START, await writes.carry_out(["a2"])

    server = Server(a1=1, a2=30)
    found, took, again = run(server, main, key=lambda item: item[0])
    assert found == ["a1 is written", UNDER_WAY, "b1 is written", PUT_OFF, "b2 is written"]
    assert (took, again) == (seconds(4), [UNDER_WAY])
    assert server.begun == ["a1", "b1", "b2", "a2"]


def test_when_all_hang_the_others_are_put_off():
    """A server that answers nothing costs three seconds, however many writes there are; the next step begins others."""

    async def main(writes, clock):
        first = await writes.carry_out([*"abcd"])
        took = clock.now() - START
        return first, took, await writes.carry_out([*"abcd"])

    first, took, second = run(Server(**dict.fromkeys("abcd", 60)), main)
    assert (first, took) == ([UNDER_WAY, UNDER_WAY, PUT_OFF, PUT_OFF], seconds(3))
    assert second == [UNDER_WAY] * 4


def test_a_bug_is_raised_once_the_others_have_ended():
    """What raises stops no other write; it is raised to the step, or to who takes the outcomes."""

    async def main(writes, clock):
        with pytest.raises(AssertionError, match="a bug of a"):
            await writes.carry_out(["a", "b"])
        return clock.now() - START

    server = Server(a=-1)
    assert run(server, main, limit=1) == seconds(0.1)
    assert server.begun == ["a", "b"]


def test_nothing_goes_on_after_the_end():
    """Writes that hang are given up when their loop ends, and when the step is cancelled."""

    async def main(writes, clock):
        step = asyncio.create_task(writes.carry_out(["a", "b"]))
        await clock.sleep(seconds(1))
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        await writes.carry_out(["c"])
        await writes.close()
        await clock.sleep(seconds(1))
        return len(asyncio.all_tasks())

    assert run(Server(a=60, b=60, c=60), main) == 1
