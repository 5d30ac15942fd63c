"""Leases while the event loop of the process is busy."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from functools import partial

import pytest
from tests.cluster.served import served

from kubetide.acting import Elector, LeaseLost, LeaseTimes
from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import LEASES
from kubetide.ports.errors import Unauthorized
from kubetide.runtime.leases import LeaseThread
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import milliseconds, seconds

TIMES = LeaseTimes(seconds(15), seconds(10), seconds(0.2))
LEASE = "kubetide"


@asynccontextmanager
async def electing(connection, clock):
    async with HttpCluster(connection, clock) as cluster:
        yield {
            LEASE: Elector(
                cluster,
                clock,
                namespace="kube-system",
                name=LEASE,
                identity="me",
                component="test",
                times=TIMES,
            )
        }


@asynccontextmanager
async def leading(connection, clock):
    """Yield the thread of a process that leads, and the task that keeps it so."""
    async with LeaseThread(partial(electing, connection), clock) as leases:
        fence = leases.electors[LEASE].fence
        assert not fence.still_leading(), "nobody elects before run"
        task = asyncio.create_task(leases.run())
        async with asyncio.timeout(60):
            while not fence.still_leading():
                await clock.sleep(milliseconds(10))
        yield leases, task


def on_a_server_of_its_own(story):
    """Run ``story(connection, clock)`` beside a server in another thread, which answers while the story blocks its own."""

    async def serve(answer, clock):
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        async with served(clock) as (_, _, connection):
            answer((connection, partial(loop.call_soon_threadsafe, ended.set)))
            await ended.wait()

    async def run(clock):
        begun = asyncio.Future()
        answer = partial(asyncio.get_running_loop().call_soon_threadsafe, begun.set_result)
        server = asyncio.create_task(asyncio.to_thread(run_real, partial(serve, answer)))
        connection, end = await begun
        try:
            await story(connection, clock)
        finally:
            end()
            await server

    run_real(run)


async def spec_of(connection, clock):
    async with HttpCluster(connection, clock) as cluster:
        return (await cluster.get(LEASES, LEASE, namespace="kube-system")).spec


@pytest.mark.slow
def test_a_busy_event_loop_loses_no_lease():
    """A step that computes for longer than the renew deadline, as over hundreds of thousands of pods, ends no process."""

    async def story(connection, clock):
        async with leading(connection, clock) as (leases, task):
            begun = time.monotonic()
            while time.monotonic() - begun < 11:
                pass
            assert leases.electors[LEASE].fence.still_leading()
            task.cancel()

    on_a_server_of_its_own(story)


def test_the_lease_is_released_at_the_end():
    """Another process leads at once."""

    async def story(connection, clock):
        async with leading(connection, clock) as (leases, task):
            assert (await spec_of(connection, clock)).holder_identity == "me"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not leases.electors[LEASE].fence.still_leading()
        assert not (await spec_of(connection, clock)).holder_identity

    on_a_server_of_its_own(story)


def test_a_lease_that_another_has_taken_is_lost():
    """The caller hears of it, as from an elector in its own event loop."""

    async def story(connection, clock):
        async with leading(connection, clock) as (leases, task), HttpCluster(connection, clock) as cluster:
            patch = {"spec": {"holderIdentity": "another"}}
            await cluster.patch(LEASES, LEASE, patch, namespace="kube-system")
            with pytest.raises(LeaseLost, match="is held by another"):
                await task
            assert not leases.electors[LEASE].fence.still_leading()

    on_a_server_of_its_own(story)


def test_electors_that_cannot_be_made_end_the_start():
    """The error is that of making them."""

    @asynccontextmanager
    async def failing(_clock):
        raise Unauthorized("no token")
        yield {}

    async def run(clock):
        with pytest.raises(Unauthorized, match="no token"):
            async with LeaseThread(failing, clock):
                pass

    run_real(run)


def test_a_start_that_is_interrupted_leaves_no_thread():
    """SIGTERM while the electors are being made: the process would wait for the thread at its end."""
    ended = []

    @asynccontextmanager
    async def slow(clock):
        await clock.sleep(milliseconds(300))
        yield {}
        ended.append(True)

    async def run(clock):
        leases = LeaseThread(slow, clock)
        task = asyncio.create_task(leases.__aenter__())
        await clock.sleep(milliseconds(50))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(60):
            while not ended:
                await clock.sleep(milliseconds(10))

    run_real(run)
