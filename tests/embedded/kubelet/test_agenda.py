from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.agenda import Agenda
from kubetide.embedded.draws import Between, fixed
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Instant, after, milliseconds, minutes, seconds

START = Instant(0)


@settings(max_examples=50, deadline=None)
@given(dues=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12))
def test_work_is_done_when_due_in_the_order_of_due_and_put(dues):
    """Whenever work is put, it is done at its due instant, or at once when that has passed; ties in order of putting."""

    async def main(clock):
        agenda, done = Agenda(clock), []

        async def handle(number):
            done.append((clock.now(), number))

        task = asyncio.create_task(agenda.run(handle))
        expected = []
        for number, (put_at, due) in enumerate(sorted(dues, key=lambda each: each[0])):
            await clock.sleep(seconds(put_at) - (clock.now() - START))
            agenda.put(after(START, seconds(due)), number)
            expected.append((max(after(START, seconds(due)), clock.now()), number))
        await clock.sleep(minutes(1))
        assert not task.done()
        task.cancel()
        assert len(agenda) == 0
        assert sorted(done) == sorted(expected)
        assert [at for at, _ in done] == sorted(at for at, _ in done)

    run_virtual(main, start=START)


def test_ties_are_done_in_the_order_they_were_put():
    """Equal dues are first in, first out."""

    async def main(clock):
        agenda, done = Agenda(clock), []

        async def handle(number):
            done.append(number)

        for number in range(20):
            agenda.put(after(START, seconds(5 if number % 2 else 3)), number)
        task = asyncio.create_task(agenda.run(handle))
        await clock.sleep(seconds(6))
        task.cancel()
        return done

    assert run_virtual(main, start=START) == [*range(0, 20, 2), *range(1, 20, 2)]


def test_draws_stay_in_their_bounds():
    """An even draw lies between its ends."""
    even = [Between(seconds(2), seconds(8)).draw(1, "k", number) for number in range(500)]
    assert min(even) >= seconds(2)
    assert max(even) <= seconds(8)
    assert sum(even) / 500 == pytest.approx(seconds(5), rel=0.05)
    assert fixed(milliseconds(7)).draw(1, "k") == milliseconds(7)


def test_impossible_delays_are_refused():
    """Delays that end before they begin are errors."""
    with pytest.raises(ValueError, match="from a smaller to a larger duration"):
        Between(seconds(2), seconds(1))
