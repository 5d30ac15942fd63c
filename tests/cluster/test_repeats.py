"""Requests, their rate and their repeats: the pure rules, and the rules at work against a server."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.answering import asking, config_map, status

from kubetide.acting import Elector, LeaseLost, LeaseTimes
from kubetide.cluster import Connection, HttpCluster
from kubetide.cluster.limits import Limits, TokenBucket
from kubetide.cluster.repeats import Failure, pause_before_repeat
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS
from kubetide.ports.errors import (
    Conflict,
    InternalError,
    TooManyRequests,
    Unavailable,
    Withheld,
)
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced, run_real
from kubetide.units.time import Duration, milliseconds, seconds, to_seconds

WRITES = ("POST", "PUT", "PATCH", "DELETE")
BUDGET = ({"reason": "DisruptionBudget", "message": "needs 2 healthy pods"},)


def answered(code, retry_after=None, error=InternalError, **more):
    return Failure(error("no", retry_after_s=retry_after, **more), "answered", code)


# ── the rules ───────────────────────────────────────────────────────────────────────────────────


@given(
    st.floats(0.5, 1000),
    st.integers(1, 50),
    st.lists(st.integers(0, 2_000_000_000), min_size=1, max_size=80),
)
def test_a_bucket_limits_the_rate(qps, burst, gaps):
    """In no period do more than burst + qps x time requests go, and no request waits without need."""
    bucket, now, went = TokenBucket(qps, burst), 0, []
    step = round(1e9 / qps)
    for gap in gaps:
        now += gap
        went.append(now + bucket.wait_of(Duration(now)))
    assert went == sorted(went), "requests go in the order in which they ask"
    for first in range(len(went)):
        for last in range(first + burst, len(went)):
            assert went[last] - went[first] >= (last - first - burst + 1) * step
    fresh = TokenBucket(qps, burst)
    assert [fresh.wait_of(Duration(0)) for _ in range(burst + 1)] == [0] * burst + [step]


def test_no_bound_means_no_wait():
    """qps 0 lets everything through; a bucket that cannot be filled is refused."""
    bucket = TokenBucket(0, 1)
    assert [bucket.wait_of(Duration(0)) for _ in range(100)] == [0] * 100
    with pytest.raises(ValueError, match="burst"):
        Limits(burst=0)


@pytest.mark.parametrize("method", ["GET", *WRITES])
def test_what_the_server_did_not_take_on_is_repeated_as_it_says(method):
    """429 with Retry-After: any request, after that pause and up to half of it more, ten times at most."""
    failure = answered(429, 2, TooManyRequests)
    for repeats in range(10):
        assert pause_before_repeat(method, failure, repeats, 0.0) == seconds(2)
        assert seconds(2) <= pause_before_repeat(method, failure, repeats, 0.999) < seconds(3)
    assert pause_before_repeat(method, failure, 10, 0.0) is None
    assert pause_before_repeat(method, answered(429, None, TooManyRequests), 0, 0.0) is None


def test_a_budget_s_refusal_is_the_caller_s():
    """An eviction that a disruption budget forbids is not tried again here, even with Retry-After."""
    failure = answered(429, 10, TooManyRequests, causes=BUDGET)
    assert pause_before_repeat("POST", failure, 0, 0.0) is None


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "failure", [answered(503, 1), answered(500, 1), answered(504), Failure(Unavailable("x"), "broken")]
)
def test_a_write_that_may_have_been_done_is_never_repeated(method, failure):
    """After a 5xx or a broken connection nobody knows what the server did."""
    assert pause_before_repeat(method, failure, 0, 0.0) is None


@pytest.mark.parametrize(
    "failure", [answered(503), answered(502), answered(504), Failure(Unavailable("x"), "broken")]
)
def test_a_read_is_tried_three_times_more(failure):
    """After a passing fault: 250 ms, 500 ms, 1 s, each up to twice as long."""
    pauses = [pause_before_repeat("GET", failure, repeats, 0.0) for repeats in range(4)]
    assert pauses == [milliseconds(250), milliseconds(500), seconds(1), None]
    assert pause_before_repeat("GET", failure, 0, 0.5) == milliseconds(375)


@pytest.mark.parametrize("method", ["GET", *WRITES])
def test_what_never_left_may_go_again(method):
    """Without a connection nothing was done; a certificate that is not trusted will not be trusted later."""
    assert pause_before_repeat(method, Failure(Unavailable("x"), "unsent"), 0, 0.0) == milliseconds(250)
    assert pause_before_repeat(method, Failure(Unavailable("x"), "refused"), 0, 0.0) is None


@pytest.mark.parametrize("failure", [answered(500), answered(404), answered(409, 1, Conflict), answered(401)])
def test_answers_are_not_argued_with(failure):
    """A refusal is an answer."""
    assert pause_before_repeat("GET", failure, 0, 0.0) is None


# ── at work ─────────────────────────────────────────────────────────────────────────────────────


class Counted:
    """Notes the calls that an observer receives."""

    def __init__(self):
        self.answers, self.waits, self.repeats = [], [], []

    def answered(self, method, code, took):
        assert took >= 0
        self.answers.append((method, code))

    def waited(self, method, waited):
        self.waits.append((method, waited))

    def repeated(self, method, code):
        self.repeats.append((method, code))


class Script:
    """Answers with the next item of a list; the last answer repeats."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, request):
        self.asked.append((request.method, request.path))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "hang up":
            request.transport.abort()
            return web.Response()
        return answer() if callable(answer) else answer


def found():
    return web.json_response(config_map())


async def finding(_request):
    return found()


async def read(client):
    return await client.get(CONFIG_MAPS, "a", namespace="default")


async def write(client):
    return await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default")


@pytest.mark.parametrize("act", [read, write])
def test_flow_control_is_honoured(act):
    """A request that the server puts off is sent again after the pause, and is counted."""
    method = "GET" if act is read else "POST"

    async def main(clock):
        observer = Counted()
        script = Script(
            status(429, "TooManyRequests", retry_after=1),
            web.Response(status=429, headers={"Retry-After": "2"}),
            found,
        )
        async with asking(script, clock, observer=observer) as client:
            begun = clock.monotonic()
            assert (await act(client)).metadata.name == "a"
            assert clock.monotonic() - begun >= seconds(3)
        assert observer.answers == [(method, "429"), (method, "429"), (method, "200")]
        assert observer.repeats == [(method, "429")] * 2

    run_paced(main, start=machine_time(), pace=Pace(20))


def test_a_pause_past_the_deadline_is_not_waited_for():
    """An answer that asks to come back after the deadline is reported at once."""

    async def main(clock):
        script = Script(status(429, "TooManyRequests", retry_after=3600))
        async with asking(script, clock) as client:
            begun = clock.monotonic()
            with pytest.raises(TooManyRequests) as error:
                await read(client)
            assert error.value.retry_after_s == 3600
            assert clock.monotonic() - begun < seconds(30)

    run_real(main)


def test_a_lease_that_is_lost_in_a_long_pause_names_the_answer():
    """Where the server puts off renewals past the renew deadline, the process ends with the server's words."""

    async def handle(request):
        if request.method == "PUT":
            return status(429, "TooManyRequests", retry_after=30)
        if request.method == "GET":
            return status(404, "NotFound")
        return web.json_response(await request.json())

    async def main(clock):
        times = LeaseTimes(seconds(3), seconds(2), seconds(0.5))
        async with asking(handle, clock) as client:
            one = Elector(client, clock, namespace="a", name="b", identity="c", component="d", times=times)
            with pytest.raises(LeaseLost, match="no answer in time; the last one was: code 429"):
                await asyncio.wait_for(one.run(), 60)

    run_paced(main, start=machine_time(), pace=Pace(20))


def test_only_reads_are_repeated_after_a_fault():
    """A read survives hang-ups and 503s; a write fails with the first one."""

    async def main(clock):
        script = Script("hang up", status(503, "ServiceUnavailable"), found)
        async with asking(script, clock) as client:
            assert (await read(client)).metadata.name == "a"
        assert len(script.asked) == 3
        for answer in ("hang up", status(503, "ServiceUnavailable", retry_after=1)):
            script = Script(answer)
            async with asking(script, clock) as client:
                with pytest.raises(Unavailable):
                    await write(client)
            assert len(script.asked) == 1

    run_paced(main, start=machine_time(), pace=Pace(10))


def test_an_answer_that_breaks_off_is_read_again():
    """A body that ends before its length is no answer."""

    async def main(clock):
        broken = []

        async def handler(request):
            if broken:
                return found()
            broken.append(1)
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"metadata":')
            request.transport.abort()
            return response

        async with asking(handler, clock) as client:
            assert (await read(client)).metadata.name == "a"

    run_paced(main, start=machine_time(), pace=Pace(10))


def test_nobody_listening():
    """A write that never left is tried four times in all; the error names the request."""

    async def main(clock):
        observer = Counted()
        async with HttpCluster(Connection("http://127.0.0.1:9"), clock, observer=observer) as client:
            with pytest.raises(
                Unavailable, match=r"POST http://127\.0\.0\.1:9/api/v1/namespaces/default/configmaps"
            ):
                await write(client)
        assert observer.answers == [("POST", "<error>")] * 4

    run_paced(main, start=machine_time(), pace=Pace(10))


@pytest.mark.parametrize("stage", ["head", "body"])
def test_a_request_has_a_deadline(stage):
    """A server that says nothing, or stops in the middle, is given up after the deadline."""

    async def main(clock):
        async def handler(request):
            response = web.StreamResponse()
            if stage == "body":
                await response.prepare(request)
                await response.write(b"{")
            await asyncio.Event().wait()

        async with asking(handler, clock, limits=Limits(deadline=seconds(1))) as client:
            begun = clock.monotonic()
            with pytest.raises(Unavailable, match="no answer within 1s"):
                await read(client)
            assert clock.monotonic() - begun >= milliseconds(999)

    run_real(main)


def test_the_client_limits_its_rate():
    """Beyond the burst at most qps requests go per second."""

    async def main(clock):
        async with asking(finding, clock, limits=Limits(qps=20, burst=5)) as client:
            begun = clock.monotonic()
            await asyncio.gather(*(read(client) for _ in range(15)))
            # A busy machine only takes longer.
            assert to_seconds(Duration(clock.monotonic() - begun)) >= 0.499

    run_real(main)


def test_watches_and_the_burst_do_not_wait():
    """As many requests as the burst allows go at once, whatever watches were opened before them."""

    async def main(clock):
        observer = Counted()
        # A token takes longer than the test may: a busy machine cannot hide a wait, nor make one.
        async with asking(finding, clock, limits=Limits(qps=0.01, burst=5), observer=observer) as client:
            for _ in range(5):
                async for _batch in client.watch(CONFIG_MAPS, resource_version="1"):
                    pass
            async with asyncio.timeout(60):
                for _ in range(5):
                    await read(client)
            assert observer.waits == []

    run_real(main)


def test_writes_under_way_are_bounded():
    """No more writes than allowed are under way; reads are not held up by them."""

    async def main(clock):
        at_once, most, go = 0, 0, asyncio.Event()

        async def handler(request):
            nonlocal at_once, most
            if request.method == "GET":
                go.set()
                return found()
            at_once += 1
            most = max(most, at_once)
            await go.wait()
            at_once -= 1
            return found()

        async with asking(handler, clock, limits=Limits(writes=3)) as client:
            writes = [asyncio.ensure_future(write(client)) for _ in range(10)]
            while at_once < 3:
                await clock.sleep(milliseconds(1))
            await read(client)
            await asyncio.gather(*writes)
        assert most == 3

    run_real(main)


def test_what_may_not_be_written_is_not_sent():
    """The question is asked when the write's turn has come; reads are not asked."""

    async def main(clock):
        script, reasons = (
            Script(status(429, "TooManyRequests", retry_after=1), found),
            ["", "the lease has run out"],
        )
        async with asking(script, clock, refusal=lambda: reasons.pop(0)) as client:
            with pytest.raises(Withheld, match="the lease has run out"):
                await write(client)
            assert (await read(client)).metadata.name == "a"
        assert [method for method, _ in script.asked] == ["POST", "GET"]

    run_paced(main, start=machine_time(), pace=Pace(10))


@pytest.mark.parametrize(
    ("patch_type", "media_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("json", "application/json-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
    ],
)
def test_patches_say_what_they_are(patch_type, media_type):
    """Each patch type of the port has its media type."""

    async def main(clock):
        said = []

        async def handler(request):
            said.append(request.headers["Content-Type"])
            return web.json_response({"metadata": {"name": "a"}})

        async with asking(handler, clock) as client:
            await client.patch(DEPLOYMENTS, "a", {}, namespace="default", patch_type=patch_type)
        assert said == [media_type]

    run_real(main)
