"""The one mechanism for time: the event loop's own clock plus an epoch.

``run_virtual``, ``run_paced`` and ``run_real`` start a program and hand it a ``LoopClock``. In virtual
time the loop jumps to its next timer; at a pace it waits for it as long as the speed says; nothing else
changes. This module and ``paced.py`` alone may read the machine's clock, and this one ``asyncio.sleep``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, cast

from kubetide.ports.clock import Clock
from kubetide.runtime.timing.paced import Pace, PacedLoop
from kubetide.runtime.timing.virtual import Stalled, VirtualLoop
from kubetide.units.time import ZERO, Duration, Instant

__all__ = ["LoopClock", "Pace", "Stalled", "machine_time", "run_paced", "run_real", "run_virtual", "ticks"]

T = TypeVar("T")
_Loop = asyncio.AbstractEventLoop
Main = Callable[[Clock], Coroutine[Any, Any, T]]


class _TimedLoop(Protocol):
    def time_ns(self) -> int: ...
    async def sleep_ns(self, duration: int) -> None: ...


class LoopClock:
    """The Clock port over the running event loop: ``epoch`` is the wall time at loop time 0.

    Must be made while a loop of ``run_virtual``, ``run_paced`` or ``run_real`` runs.
    """

    def __init__(self, epoch: Instant) -> None:
        loop = asyncio.get_running_loop()
        if not hasattr(loop, "time_ns"):
            raise RuntimeError(
                f"{type(loop).__name__} keeps no integer time: start with run_virtual or run_real"
            )
        timed = cast("_TimedLoop", loop)
        self._time_ns, self._sleep_ns = timed.time_ns, timed.sleep_ns
        self._epoch = epoch

    def now(self) -> Instant:
        """Return wall time; within one run it never goes back."""
        return Instant(self._epoch + self._time_ns())

    def monotonic(self) -> Duration:
        """Return the time since the loop was made."""
        return Duration(self._time_ns())

    async def sleep(self, duration: Duration) -> None:
        """Return after that much of the loop's time; yields once if it is not positive."""
        if duration > 0:
            await self._sleep_ns(duration)
        else:
            await asyncio.sleep(0)


def machine_time() -> Instant:
    """Return the machine's wall time, for use outside of a run."""
    return Instant(time.time_ns())


async def ticks(clock: Clock, period: Duration, *, offset: Duration = ZERO) -> AsyncGenerator[Instant, None]:
    """Yield the due instants ``start + offset + k * period``, each at its time; start is the first call.

    Dues are computed from the start, never by adding sleeps, so that they do not drift. When the
    reader was busy past one or several dues, the last of them is given at once and the earlier
    ones are left out. Loops whose ticks meet at one instant are put in order by small offsets.
    """
    if period <= 0:
        raise ValueError(f"a period of ticks must be positive, not {period} ns")
    first = clock.now() + offset
    count = 0
    while True:
        due = first + count * period
        await clock.sleep(Duration(due - clock.now()))
        late = max(clock.now() - due, 0) // period
        count += late
        yield Instant(due + late * period)
        count += 1


def run_virtual(main: Main[T], *, start: Instant) -> T:
    """Return the result of ``main(clock)``, run in virtual time from ``start``.

    Where an event loop is running already (a notebook), it runs in a thread of its own, and this waits for it.
    Raises: Stalled when tasks wait and nothing will ever wake them; else what ``main`` raises.
    """

    async def run() -> T:
        return await main(LoopClock(start))

    return _run_apart(run, VirtualLoop)


def _run_apart(run: Callable[[], Coroutine[Any, Any, T]], make_loop: Callable[[], _Loop]) -> T:
    """Return what ``run`` returns on a loop of its own; a thread can run one loop only."""

    def whole(made: Callable[[_Loop], None] = lambda _: None) -> T:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            made(runner.get_loop())
            return runner.run(run())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return whole()
    loops: list[_Loop] = []
    with ThreadPoolExecutor(1, "kubetide") as threads:
        result = threads.submit(whole, loops.append)
        try:
            return result.result()
        except KeyboardInterrupt:
            for loop in loops:
                loop.call_soon_threadsafe(_cancel_all, loop)
            raise


def _cancel_all(loop: _Loop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def run_paced(main: Main[T], *, start: Instant, pace: Pace) -> T:
    """Return the result of ``main(clock)``, run at a pace from ``start``; ``pace`` notes the real speed.

    Time is never ahead of the work: where it cannot keep up, the clock slows down. Time-outs of network
    clients are scaled too. Ctrl-C cancels ``main``, waits for its clean-up, and then raises KeyboardInterrupt.
    """

    async def run() -> T:
        return await main(LoopClock(start))

    return _run_apart(run, lambda: PacedLoop(pace))


def run_real(main: Main[T], *, start: Instant | None = None) -> T:
    """Return the result of ``main(clock)``, run in real time; wall time begins at ``start``, else the machine's.

    Ctrl-C cancels ``main``, waits for its clean-up, and then raises KeyboardInterrupt.
    """
    epoch = machine_time() if start is None else start

    async def run() -> T:
        return await main(LoopClock(epoch))

    with asyncio.Runner(loop_factory=_RealLoop) as runner:
        return runner.run(run())


# Linux's monotonic clock stands still while the machine sleeps. A lease would then be held, and a cache be
# fresh, for as long as the machine has slept.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class _RealLoop(asyncio.SelectorEventLoop):
    """The stock loop, its time counted from 0; it goes on while the machine sleeps."""

    def __init__(self) -> None:
        self._base_ns = time.clock_gettime_ns(_ELAPSED)
        super().__init__()

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self.time_ns() / 1e9

    def time_ns(self) -> int:
        """Nanoseconds since the loop was made."""
        return time.clock_gettime_ns(_ELAPSED) - self._base_ns

    async def sleep_ns(self, duration: int) -> None:
        """Return after that many nanoseconds."""
        await asyncio.sleep(duration / 1e9)
