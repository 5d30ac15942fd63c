from __future__ import annotations

import asyncio

import pytest

from kubetide.embedded.wake import Wake
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Instant, after, seconds

START = Instant(0)


def waited_until(limit_s, *, set_after_s=None):
    """When a wait with a limit ends, the flag being set meanwhile or not."""

    async def main(clock):
        wake = Wake()
        if set_after_s is not None:
            asyncio.get_running_loop().call_later(set_after_s, wake.set)
        await wake.wait(limit_s)
        return clock.now()

    return run_virtual(main, start=START)


def test_a_wait_ends_with_the_flag_or_with_its_limit():
    """Whichever comes first ends it; a limit of nothing ends it at once."""
    assert waited_until(None, set_after_s=3) == after(START, seconds(3))
    assert waited_until(5, set_after_s=3) == after(START, seconds(3))
    assert waited_until(2, set_after_s=3) == after(START, seconds(2))
    assert waited_until(0) == START


def test_a_flag_that_is_set_lets_everybody_through_until_it_is_cleared():
    """After clear the next wait waits again, also after a wait that ran into its limit."""

    async def main(clock):
        wake = Wake()
        wake.set()
        await wake.wait()
        await wake.wait(1)
        assert clock.now() == START
        wake.clear()
        await wake.wait(1)
        await wake.wait(1)
        assert clock.now() == after(START, seconds(2))

    run_virtual(main, start=START)


def test_a_wait_that_was_cancelled_leaves_no_timer():
    """A timer of a wait that is over does not end the next one."""

    async def main(clock):
        wake = Wake()
        first = asyncio.create_task(wake.wait(1))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await wake.wait(4)
        assert clock.now() == after(START, seconds(4))

    run_virtual(main, start=START)
