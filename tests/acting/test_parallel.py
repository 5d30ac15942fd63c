"""Requests at once: one that fails neither stops nor outlives the others."""

from __future__ import annotations

import pytest

from kubetide.acting import both, in_parallel
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")


@pytest.mark.parametrize("limit", [1, 3, 30])
def test_all_items_are_done_before_the_first_failure_is_raised(limit):
    """When some of thirty items fail at once all others are done, and then the first failure is raised."""

    async def main(clock):
        done = []

        async def work(item):
            if item in {4, 2}:
                raise RuntimeError(f"item {item}")
            await clock.sleep(seconds(1))
            done.append(item)
            return item

        with pytest.raises(RuntimeError, match="item 2"):
            await in_parallel(range(30), work, limit=limit)
        assert sorted(done) == [item for item in range(30) if item not in {2, 4}]

    run_virtual(main, start=START)


def test_of_two_things_neither_is_left_behind():
    """The error of one comes when the other has ended too."""

    async def main(clock):
        done = []

        async def fails():
            raise RuntimeError("at once")

        async def lasts():
            await clock.sleep(seconds(3))
            done.append(1)
            return 1

        for pair in ((fails, lasts), (lasts, fails)):
            with pytest.raises(RuntimeError, match="at once"):
                await both(pair[0](), pair[1]())
        assert await both(lasts(), lasts()) == (1, 1)
        assert done == [1, 1, 1, 1]

    run_virtual(main, start=START)
