"""Writes and credentials through faults: nothing is done twice, and what has run out is renewed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.cluster.faults import kinds as faults
from tests.cluster.faults.proxy import AUTHORITY, HOST, proxied
from tests.cluster.faults.test_fault_reads import SPEED, caching, until
from tests.cluster.served import TOKEN, served

from kubetide.cluster import HttpCluster
from kubetide.cluster.access.connection import ExecPlugin
from kubetide.cluster.limits import Limits
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS
from kubetide.ports.errors import Unauthorized, Unavailable, Withheld
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced, run_real
from kubetide.serving import certificates
from kubetide.testing import builders
from kubetide.units.time import seconds


async def scale(client):
    await client.replace_scale(DEPLOYMENTS, "web", 7, namespace="default")


async def delete(client):
    await client.delete(DEPLOYMENTS, "web", namespace="default")


async def create(client):
    await client.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")


async def patch(client):
    await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, namespace="default")


async def evict(client):
    await client.evict(namespace="default", pod="p")


WRITES = [scale, delete, create, patch, evict]


def through(story, **more):
    """Run ``story(cluster, proxy, client, clock)`` with a Deployment and a pod behind a proxy."""

    async def main(clock):
        async with (
            served(clock) as (cluster, _, connection),
            proxied(connection) as (proxy, front),
            HttpCluster(front, clock, limits=Limits(deadline=seconds(30)), **more) as client,
        ):
            await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=2), namespace="default")
            await cluster.create(PODS, builders.pod("p"), namespace="default")
            # The connection is a used one, as most are.
            await client.get(DEPLOYMENTS, "web", namespace="default")
            await story(cluster, proxy, client, clock)

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_write_whose_answer_is_lost_is_not_sent_again(write):
    """The server has done the write, and the caller gets an error that says that the outcome is unknown."""

    async def story(_cluster, proxy, client, _clock):
        proxy.set(faults.loses_answers())
        with pytest.raises(Unavailable):
            await write(client)
        assert len(proxy.written) == 1, proxy.written

    through(story)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_write_that_is_hung_up_on_is_not_sent_again(write):
    """A connection that breaks off under a write is met by it once."""

    async def story(_cluster, proxy, client, _clock):
        proxy.set(faults.hangs_up(faults.writes))
        with pytest.raises(Unavailable):
            await write(client)
        assert (proxy.hits, proxy.written) == (1, [])

    through(story)


def test_a_write_that_is_put_off_is_done_once():
    """429 with Retry-After says that nothing was done: the write goes once more, and once only gets through."""

    async def story(cluster, proxy, client, clock):
        proxy.set(faults.answers(429, "TooManyRequests", where=faults.writes, retry_after=4))

        async def heal():
            await until(clock, lambda: proxy.hits)
            proxy.set()

        await asyncio.gather(heal(), scale(client))
        assert len(proxy.done("PUT")) == 1
        assert (await cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas == 7

    through(story)


def test_a_slow_server_has_done_the_write_once():
    """An answer beyond the deadline is not waited for, and the write is not repeated."""

    async def story(_cluster, proxy, client, clock):
        async def slow(exchange):
            if not exchange.writes:
                return None
            answer = await exchange.pass_on()
            await clock.sleep(seconds(60))
            return answer

        proxy.set(slow)
        with pytest.raises(Unavailable, match="no answer within 30s"):
            await scale(client)
        await clock.sleep(seconds(40))
        assert len(proxy.written) == 1

    through(story)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_fence_that_shuts_while_a_write_waits_stops_it(write):
    """The lease is lost between a write's first try and its repeat: no byte of it reaches the server."""
    shut = []

    async def story(_cluster, proxy, client, clock):
        put_off = faults.answers(429, "TooManyRequests", where=faults.writes, retry_after=2)

        async def shuts(exchange):
            answer = await put_off(exchange)
            if answer is not None:
                shut.append("the lease is lost")
            return answer

        proxy.set(shuts)
        with pytest.raises(Withheld, match="the lease is lost"):
            await write(client)
        assert (proxy.hits, proxy.written) == (1, [])

    through(story, refusal=lambda: shut[0] if shut else "")


# ── the server comes and goes ───────────────────────────────────────────────────────────────────


def test_an_unreachable_and_flapping_server():
    """Nobody listens, then somebody does for a moment, again and again: the cache comes through."""

    async def main(clock):
        async with caching(clock) as cached:
            for _ in range(4):
                await cached.proxy.be_unreachable()
                await cached.churn(1)
                await until(clock, lambda: cached.informer.failures)
                assert "cannot connect" in cached.informer.last_error.lower()
                await cached.proxy.listen()
                await clock.sleep(seconds(2))
            await cached.settle()

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


def expired_context():
    """A listener whose certificate ran out in 2001."""
    context = AUTHORITY.server_context([HOST])
    certificates.load_pair(context, AUTHORITY.server([HOST], end=datetime(2001, 1, 1, tzinfo=UTC)))
    return context


def test_the_server_s_certificate_has_run_out():
    """The cache says so while it lasts, sends nothing past it, and goes on once there is a new one."""

    async def main(clock):
        async with caching(clock) as cached:
            proxy = cached.proxy
            good, written = proxy._front, len(proxy.written)
            await proxy.be_unreachable()
            proxy._front = expired_context()
            await proxy.listen()
            await until(clock, lambda: "certificate has expired" in cached.informer.last_error)
            with pytest.raises(Unavailable, match="certificate has expired"):
                await create(cached.client)
            assert len(proxy.written) == written
            await proxy.be_unreachable()
            proxy._front = good
            await proxy.listen()
            await cached.settle()

    run_paced(main, start=machine_time(), pace=Pace(SPEED))


def test_another_authority_is_not_trusted():
    """A server that anybody could have put there gets no token."""

    async def story(_cluster, proxy, client, _clock):
        await proxy.be_unreachable()
        proxy._front = certificates.Authority().server_context([HOST])
        await proxy.listen()
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await scale(client)
        assert proxy.written == []

    through(story)


# ── credentials ─────────────────────────────────────────────────────────────────────────────────


def takes_only(token):
    """401 for whoever shows another token."""
    refuse = faults.answers(401, "Unauthorized", message="Unauthorized")

    async def fault(exchange):
        if exchange.request.headers.get("Authorization") == f"Bearer {token[0]}":
            # The server behind knows one token only.
            exchange.request = exchange.request.clone(
                headers={**exchange.request.headers, "Authorization": f"Bearer {TOKEN}"}
            )
            return None
        return await refuse(exchange)

    return fault


def test_a_token_that_has_run_out_is_read_anew(tmp_path):
    """After a 401 the file is read again, also for writes; while it holds the old token, every request gets a 401."""
    file, valid = tmp_path / "token", ["first"]
    file.write_text("first")

    async def main(clock):
        async with served(clock) as (cluster, _, connection), proxied(connection) as (proxy, front):
            shown = replace(front, token="", token_file=file)
            proxy.set(takes_only(valid))
            await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=2), namespace="default")
            async with HttpCluster(shown, clock) as client:
                await client.get(DEPLOYMENTS, "web", namespace="default")
                valid[0] = "second"
                with pytest.raises(Unauthorized):
                    await scale(client)
                assert proxy.written == []
                file.write_text("second")
                await scale(client)
                assert len(proxy.done("PUT")) == 1

    run_real(main)


def test_a_plug_in_is_run_again(tmp_path):
    """After a 401 the plug-in gives another token, and the refused write is sent once more."""
    runs = tmp_path / "runs"
    script = tmp_path / "plugin"
    script.write_text(
        f'#!/bin/sh\necho x >> {runs}\nn=$(wc -l < {runs} | tr -d " ")\n'
        'printf \'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",'
        '"status":{"token":"token-%s"}}\' "$n"\n'
    )
    script.chmod(0o755)
    valid = ["token-1"]

    async def main(clock):
        async with served(clock) as (cluster, _, connection), proxied(connection) as (proxy, front):
            plugin = ExecPlugin(
                api_version="client.authentication.k8s.io/v1", command=str(script), interactive_mode="Never"
            )
            proxy.set(takes_only(valid))
            await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=2), namespace="default")
            async with HttpCluster(replace(front, token="", plugin=plugin), clock) as client:
                await client.get(DEPLOYMENTS, "web", namespace="default")
                valid[0] = "token-2"
                await scale(client)
                assert len(proxy.written) == 1
        assert len(runs.read_text().split()) == 2

    run_real(main)
