from __future__ import annotations

import asyncio
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import time

import pytest

from kubetide.runtime.process import ended_by_signals
from kubetide.runtime.timing.clock import LoopClock, Pace, Stalled, run_paced, run_real, run_virtual, ticks
from kubetide.runtime.timing.paced import PacedLoop
from kubetide.units.time import Instant, milliseconds, minutes, seconds

START = Instant(1_790_000_000_000_000_007)


def test_virtual_time_starts_at_the_epoch_and_passes_exactly():
    """A sleep of a nanosecond count moves the clock by exactly that, days on end."""

    async def main(clock):
        await clock.sleep(minutes(60 * 24 * 400))
        await clock.sleep(1)
        return clock.now(), clock.monotonic()

    elapsed = minutes(60 * 24 * 400) + 1
    assert run_virtual(main, start=START) == (START + elapsed, elapsed)


def test_timers_of_one_instant_fire_in_the_order_they_were_set():
    """Equal deadlines are first in, first out, whichever way the deadline was reached."""

    async def main(clock):
        fired = []

        async def sleeper(name, first, second):
            await clock.sleep(first)
            await clock.sleep(second)
            fired.append(name)

        async with asyncio.TaskGroup() as group:
            for n in range(40):
                delay = seconds(1 + n % 2)
                group.create_task(sleeper(n, delay, seconds(3) - delay))
        return fired

    # Those that slept 1 s first set their second timer first.
    assert run_virtual(main, start=START) == [*range(0, 40, 2), *range(1, 40, 2)]


def test_a_hundred_tenths_make_ten_seconds():
    """Sums of float delays do not drift away from whole nanoseconds."""

    async def main(clock):
        for _ in range(1000):
            await asyncio.sleep(0.1)
        return clock.now()

    assert run_virtual(main, start=START) == START + seconds(100)


def test_timeouts_are_exact():
    """asyncio's own time-outs end at their instant."""

    async def main(clock):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await clock.sleep(seconds(100))
        first = clock.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3)
        return first, clock.monotonic()

    assert run_virtual(main, start=START) == (seconds(30), seconds(33))


def test_queues_and_events_need_no_time():
    """Tasks that wake one another do so at one instant."""

    async def main(clock):
        queue: asyncio.Queue[int] = asyncio.Queue()
        done = asyncio.Event()

        async def reader():
            while await queue.get() < 99:
                pass
            done.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(reader())
            for n in range(100):
                queue.put_nowait(n)
            await done.wait()
        return clock.monotonic()

    assert run_virtual(main, start=START) == 0


def test_what_can_never_wake_is_an_error_that_names_the_tasks():
    """A deadlock is raised at once and says who waits where."""

    async def never():
        await asyncio.Event().wait()

    async def main(clock):
        await clock.sleep(seconds(2))
        task = asyncio.create_task(never(), name="the-waiter")
        await task

    with pytest.raises(Stalled, match=r"at 2 s of virtual time 2 task\(s\) wait.*the-waiter in .*test_clock"):
        run_virtual(main, start=START)


def test_cancelled_timers_do_not_move_time_and_do_not_pile_up():
    """Time-outs that were not needed leave neither a jump nor a heap behind."""

    async def main(clock):
        for _ in range(5000):
            async with asyncio.timeout(1000):
                await asyncio.sleep(0)
        return clock.monotonic(), len(asyncio.get_running_loop()._timers)

    elapsed, left = run_virtual(main, start=START)
    assert elapsed == 0
    assert left <= 200


def test_cancellation_runs_clean_up_in_virtual_time():
    """A cancelled task may still sleep while it cleans up."""

    async def main(clock):
        ended = []

        async def worker():
            try:
                await clock.sleep(seconds(100))
            finally:
                await clock.sleep(seconds(5))
                ended.append(clock.monotonic())

        task = asyncio.create_task(worker())
        await clock.sleep(seconds(1))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return ended

    assert run_virtual(main, start=START) == [seconds(6)]


def test_virtual_time_refuses_threads_and_sockets():
    """An answer from outside the loop is an error, not a run that differs each time."""

    async def main(clock):
        with pytest.raises(RuntimeError, match="no threads"):
            await asyncio.to_thread(print)
        with pytest.raises(RuntimeError, match="no sockets"):
            await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)

    run_virtual(main, start=START)


def test_ticks_do_not_drift_and_a_late_tick_runs_once():
    """Dues stay on start + offset + k * period; dues missed while busy are one tick."""

    async def main(clock):
        seen = []
        async for due in ticks(clock, seconds(10), offset=seconds(3)):
            seen.append(((due - START) // 10**9, clock.monotonic() // 10**9))
            await clock.sleep(seconds(25) if len(seen) == 2 else milliseconds(300))
            if len(seen) == 5:
                return seen

    assert run_virtual(main, start=START) == [(3, 3), (13, 13), (33, 38), (43, 43), (53, 53)]


def test_ticks_need_a_positive_period():
    """A period of zero would never let time pass."""

    async def main(clock):
        await anext(ticks(clock, seconds(0)))

    with pytest.raises(ValueError, match="positive"):
        run_virtual(main, start=START)


def test_a_speed_scales_the_loop():
    """Sixty seconds at a thousandfold pass in a fraction of a second, and the clock shows all of them."""

    async def main(clock):
        await clock.sleep(seconds(60))
        return clock.now()

    pace = Pace(1000)
    assert run_paced(main, start=START, pace=pace) == START + seconds(60)
    assert 0 < pace.reached <= 1000


@pytest.mark.parametrize("speed", [1, 1e5, 1e9])
def test_time_does_not_run_ahead_of_the_work(speed):
    """Timers fire at their instants and in their order at any speed, however long the work between them takes."""

    async def main(clock):
        seen = []

        async def worker(name, period):
            for _ in range(3):
                await clock.sleep(period)
                before = clock.now()
                sum(range(200_000))  # real time passes: some milliseconds
                await asyncio.sleep(0)
                seen.append((name, clock.now() - START))
                assert clock.now() == before

        async with asyncio.TaskGroup() as group:
            group.create_task(worker("a", milliseconds(20)))
            group.create_task(worker("b", milliseconds(30)))
        return seen

    assert run_paced(main, start=START, pace=(pace := Pace(speed))) == run_virtual(main, start=START)
    assert pace.lost or speed == 1


def test_busy_clients_do_not_stop_the_time_of_a_paced_run():
    """While something comes in on a socket at every turn of the loop, timers are still due."""

    async def main(clock):
        near, far = socket.socketpair()
        with near, far:
            far.send(b"x")
            reads = []

            def read():
                # What one read brings about is always still to be done when the next one comes.
                reads.append(1)
                asyncio.get_running_loop().call_soon(lambda: None)

            asyncio.get_running_loop().add_reader(near, read)
            await clock.sleep(seconds(10))
            asyncio.get_running_loop().remove_reader(near)
        return len(reads)

    assert run_paced(main, start=START, pace=Pace(1000)) > 0


def test_real_time_begins_at_the_given_instant():
    """Without a start, wall time is the machine's; with one, it counts from there."""

    async def main(clock):
        return clock.now()

    assert 0 <= run_real(main, start=START) - START < seconds(30)
    assert run_real(main) > Instant(1_600_000_000_000_000_000)
    with pytest.raises(ValueError, match="speed"):
        Pace(0)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has one monotonic clock")
def test_time_goes_on_while_the_machine_sleeps(monkeypatch):
    """After an hour of sleep the clock is an hour later, and what was due meanwhile is due."""
    read, slept = time.clock_gettime_ns, 0

    def read_after_sleep(which):
        return read(which) + (slept if which == time.CLOCK_BOOTTIME else 0)

    monkeypatch.setattr(time, "clock_gettime_ns", read_after_sleep)

    async def main(clock):
        nonlocal slept
        waiting = asyncio.create_task(clock.sleep(minutes(30)))
        await asyncio.sleep(0)
        begun, elapsed = clock.now(), clock.monotonic()
        slept = minutes(60)
        passed = clock.now() - begun, clock.monotonic() - elapsed
        for _ in range(5):
            await asyncio.sleep(0)
        woken = waiting.done()
        waiting.cancel()
        return passed, woken

    passed, woken = run_real(main)
    assert all(minutes(60) <= one < minutes(61) for one in passed)
    assert woken


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("interrupt", [signal.default_int_handler, signal.SIG_IGN])
def test_a_request_to_end_is_as_ctrl_c(number, interrupt):
    """SIGTERM and SIGHUP end a run through its own clean-up; afterwards they do again what they did.

    So they do where SIGINT is ignored, as in what a script starts in the background.
    """
    cleaned = []

    async def main(clock):
        try:
            asyncio.get_running_loop().call_later(0, os.kill, os.getpid(), number)
            await clock.sleep(seconds(1000))
        finally:
            cleaned.append(True)

    # A shell's nohup makes SIGHUP ignored, and what is ignored stays so.
    before = {
        one: signal.signal(one, to) for one, to in ((number, signal.SIG_DFL), (signal.SIGINT, interrupt))
    }
    try:
        with pytest.raises(KeyboardInterrupt), ended_by_signals():
            run_paced(main, start=START, pace=Pace(1))
        assert cleaned == [True]
        assert signal.getsignal(number) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is interrupt
    finally:
        for one, to in before.items():
            signal.signal(one, to)


def test_ctrl_c_cancels_main_and_waits_for_its_clean_up():
    """An interrupt ends main through its own clean-up."""
    cleaned = []

    async def main(clock):
        try:
            asyncio.get_running_loop().call_later(0, os.kill, os.getpid(), signal.SIGINT)
            await clock.sleep(seconds(1000))
        finally:
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_real(main)
    assert cleaned == [True]


def test_a_loop_clock_needs_a_loop_with_integer_time():
    """The stock loop is refused with the way out."""

    async def main():
        with pytest.raises(RuntimeError, match="run_virtual or run_real"):
            LoopClock(START)

    asyncio.run(main())


_PROGRAM = """
import asyncio, hashlib
from kubetide.runtime.timing.clock import run_virtual, ticks
from kubetide.runtime.process import ended_by_signals
from kubetide.units.time import Instant, seconds, milliseconds
junk = [object() for _ in range(hash("x") % 1000)]
async def main(clock):
    log = hashlib.blake2b()
    async def ticker(name, period):
        async for due in ticks(clock, period):
            log.update(f"{name} {due} {clock.now()};".encode())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ticker(f"t{n}", milliseconds(100 + 50 * (n % 4)))) for n in range(12)]
        await clock.sleep(seconds(20))
        for task in tasks:
            task.cancel()
    return log.hexdigest()
print(run_virtual(main, start=Instant(0)))
"""


def test_the_same_run_in_two_processes_with_other_hash_seeds_is_the_same():
    """Order at equal instants depends on neither hash seeds nor addresses."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 100


@pytest.mark.parametrize("step", ["socketpair", "DefaultSelector"])
def test_a_loop_whose_making_is_interrupted_says_nothing(step, monkeypatch):
    """Ctrl-C may come while a run makes its loop: nobody closes it, and Python must not complain that it cannot."""
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(socket if step == "socketpair" else selectors, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        PacedLoop(Pace(1))
    gc.collect()
    assert complaints == []
