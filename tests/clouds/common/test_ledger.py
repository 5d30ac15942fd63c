"""Orders, and what follows from them for a group's size, whatever the cloud answers and shows."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.clouds.common.ledger import Ledger
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, Instant, minutes


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.seconds = 0

    def now(self):
        """Return the time."""
        return Instant(self.monotonic())

    def monotonic(self):
        """Return the time since the start."""
        return Duration(self.seconds * 1_000_000_000)


async def answered(error=None):
    """Return an answer, or raise."""
    if error is not None:
        raise error
    return "done"


def unanswered():
    """Return the error of an order that nobody has answered."""
    return CloudError("no answer", may_be_done=True)


@given(
    size=st.integers(1, 20),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("removed", "lost", "ignored", "grown", "grown, lost")),
            st.integers(1, 3),
            st.floats(0, 1),
        ),
        max_size=12,
    ),
)
def test_a_size_of_before_removals_is_never_too_large(size, steps):
    """Whatever was answered, and whichever of its sizes a cloud shows: no group counts as larger than it is."""

    async def main():
        ledger, sizes, sure = Ledger(Clock()), [size], True
        for number, (kind, most, age) in enumerate(steps):
            shown, count = sizes[int(age * (len(sizes) - 1))], min(most, sizes[-1])
            if kind == "grown":
                assert await ledger.resize("web", count, answered()) == "done"
                sizes = [one + count for one in sizes]
                continue
            if kind == "grown, lost":
                with pytest.raises(CloudError):
                    await ledger.resize("web", count, answered(unanswered()))
                sizes.append(sizes[-1] + count)
                sure = False
                continue
            doomed = [f"i-{number}-{each}" for each in range(count)]
            assert ledger.size_at_most("web", shown, doomed) <= sizes[-1]
            if kind == "removed":
                assert await ledger.remove("web", shown, doomed, answered()) == "done"
            else:
                with pytest.raises(CloudError):
                    await ledger.remove("web", shown, doomed, answered(unanswered()))
            sizes.append(sizes[-1] - count * (kind != "ignored"))
            sure = sure and kind != "ignored"
            assert all((one in ledger) == (kind == "removed") for one in doomed)
        assert ledger.size_at_most("web", sizes[0]) <= sizes[-1]
        assert not sure or ledger.size_at_most("web", sizes[-1]) == sizes[-1]

    asyncio.run(main())


def test_only_an_order_that_may_be_done_puts_a_group_in_doubt():
    """A refusal changes nothing: no size, no removal, and what was read still counts."""
    doubtful: list[str] = []

    async def main():
        ledger = Ledger(Clock(), doubtful.append)
        for refused in (
            ledger.resize("web", 1, answered(CloudError("no"))),
            ledger.remove("web", 3, ["i-1"], answered(CloudError("no"))),
        ):
            with pytest.raises(CloudError):
                await refused
        assert (doubtful, ledger.growing_since("web"), ledger.size_at_most("web", 3)) == ([], None, 3)
        for lost in (
            ledger.resize("web", 1, answered(unanswered())),
            ledger.remove("shop", 3, ["i-2"], answered(unanswered())),
        ):
            with pytest.raises(CloudError):
                await lost
        assert (doubtful, ledger.growing_since("web")) == (["web", "shop"], Instant(0))
        assert (ledger.resized_at("web"), ledger.resized_at("shop")) == (Instant(0), None)
        # The same machine may be removed again; no other one counts on the size of before.
        assert ("i-2" in ledger, ledger.size_at_most("shop", 3), ledger.size_at_most("shop", 3, ["i-2"])) == (
            False,
            2,
            3,
        )

    asyncio.run(main())


def test_a_removal_is_open_until_no_list_has_the_instance_or_a_quarter_of_an_hour_is_over():
    """Then the listed size counts again, and the instance may be removed again."""

    async def main():
        clock = Clock()
        ledger = Ledger(clock)
        await ledger.remove("web", 3, ["i-1", "i-2"], answered())
        ledger.keep(["i-2"])
        assert (ledger.size_at_most("web", 3), "i-1" in ledger, "i-2" in ledger) == (1, False, True)
        clock.seconds = minutes(15) // 1_000_000_000
        assert (ledger.size_at_most("web", 3), "i-2" in ledger) == (3, False)

    asyncio.run(main())


def test_growth_is_open_from_before_the_call_until_all_are_there():
    """An activity of the order may fail while the cloud has not answered yet."""

    async def main():
        clock = Clock()
        ledger = Ledger(clock)

        async def slow():
            clock.seconds += 10

        await ledger.resize("web", 2, slow())
        assert ledger.growing_since("web") == Instant(0)
        await ledger.resize("web", -1, answered())
        assert (ledger.growing_since("web"), ledger.resized_at("web")) == (Instant(0), clock.now())
        ledger.complete("web")
        assert (ledger.growing_since("web"), ledger.resized_at("web")) == (None, clock.now())

    asyncio.run(main())
