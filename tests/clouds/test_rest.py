"""Requests to clouds: what is repeated, and what is not."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.alibaba.api import refusal as alibaba
from kubetide.clouds.common.rest import (
    HttpSender,
    NoAnswer,
    Patience,
    Request,
    Response,
    Rest,
    json_request,
    pause_before_repeat,
    retry_after,
)
from kubetide.clouds.common.tokens import Renewed, Until
from kubetide.clouds.tencent.api import refusal as tencent
from kubetide.ports.errors import CloudError, CloudWithheld
from kubetide.units.time import Duration, after, milliseconds, minutes, seconds

THROTTLED = CloudError("slow down", cause="Throttled")
REFUSED = CloudError("no", cause="Permission")
PATIENCE = Patience()


def refusal(response):
    return None if response.status == 200 else CloudError(f"HTTP {response.status}")


class Script:
    """Answers in turn; an exception is raised."""

    def __init__(self, *answers):
        self.answers, self.sent = list(answers), []

    async def __call__(self, request):
        self.sent.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def request():
    return Request("GET", "https://cloud/")


def ask(script, *, change=False):
    clock = Clock()
    rest = Rest(script, clock, refusal, seed=1)
    before = clock.now()

    async def main():
        if change:
            return await rest.change(await request())
        return await rest.read(request)

    return asyncio.run(main()), Duration(clock.now() - before)


def test_a_read_is_repeated_with_growing_pauses():
    """A read that fails for a moment is sent again after 250 ms, then 500 ms, each longer by a draw."""
    script = Script(Response(503), NoAnswer("https://cloud/", "reset"), Response(200))
    answer, passed = ask(script)
    assert answer.status == 200
    assert milliseconds(750) <= passed <= milliseconds(1500)


def test_a_change_is_never_repeated():
    """Nobody knows whether a change that got no answer was made, so it is not sent again."""
    script = Script(NoAnswer("https://cloud/", "reset"))
    with pytest.raises(NoAnswer, match="no answer from https://cloud/: reset"):
        ask(script, change=True)
    assert len(script.sent) == 1


def test_a_change_asks_whether_it_may_be_made():
    """A lease may be lost between two requests of one call: the second is not sent, and reads go on."""
    script, why = Script(Response(200), Response(200)), [""]
    rest = Rest(script, Clock(), refusal, withheld=lambda: why[0])

    async def main():
        await rest.change(await request())
        why[0] = "the lease is lost"
        with pytest.raises(CloudWithheld, match="the lease is lost"):
            await rest.change(await request())
        await rest.read(request)

    asyncio.run(main())
    assert len(script.sent) == 2


def test_a_refusal_is_not_repeated():
    """Missing rights do not come by asking again."""
    script = Script(Response(403))
    with pytest.raises(CloudError, match="HTTP 403"):
        ask(script)
    assert len(script.sent) == 1


def test_the_error_is_raised_when_patience_ends():
    """After four repeats the last error is the answer."""
    script = Script(*[Response(503)] * 5)
    with pytest.raises(CloudError, match="HTTP 503"):
        ask(script)
    assert len(script.sent) == 5


def test_a_throttled_account_is_not_asked_ever_more():
    """After one read has waited in vain the others do not, for twenty seconds or until one succeeds."""
    answers = [429] * 5 + [429, 429, 200] + [429, 200] + [429] * 5 + [429, 429, 200]
    script, clock = Script(*map(Response, answers)), Clock()
    rest = Rest(script, clock, lambda answer: THROTTLED if answer.status == 429 else None, seed=1)

    async def main():
        async def refused_after(count):
            with pytest.raises(CloudError, match="slow down"):
                await rest.read(request)
            assert len(script.sent) == count

        await refused_after(5)
        await refused_after(6)
        await refused_after(7)
        await rest.read(request)
        await rest.read(request)
        assert len(script.sent) == 10, "a success restores patience"
        await refused_after(15)
        await refused_after(16)
        await clock.sleep(seconds(20))
        await rest.read(request)
        assert len(script.sent) == 18

    asyncio.run(main())


@given(
    repeats=st.integers(0, 10),
    spent=st.integers(0, 60).map(seconds),
    status=st.sampled_from([0, 400, 403, 404, 409, 429, 500, 503]),
    error=st.sampled_from([THROTTLED, REFUSED]),
    draw=st.floats(0, 1, exclude_max=True),
)
def test_pauses_stay_within_their_budget(repeats, spent, status, error, draw):
    """No pause passes the budget or the number of repeats, and none comes without a reason to hope."""
    pause = pause_before_repeat(
        error, status=status, repeats=repeats, spent=spent, patience=PATIENCE, draw=draw
    )
    hopeful = error is THROTTLED or status in {0, 429, 500, 503}
    if pause is None:
        grown = Duration(PATIENCE.first << repeats)
        over = spent + round(grown * (1 + draw)) > PATIENCE.budget
        assert not hopeful or repeats >= PATIENCE.repeats or over
    else:
        assert hopeful
        assert repeats < PATIENCE.repeats
        assert spent + pause <= PATIENCE.budget


def test_the_cloud_says_how_long_to_wait():
    """Retry-After in seconds is the pause, and a time is one from the answer's Date on; else there is none."""
    assert retry_after({"retry-after": "7"}) == seconds(7)
    until, sent = "Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:53 GMT"
    assert retry_after({"retry-after": until, "date": sent}) == seconds(7)
    assert retry_after({"retry-after": sent, "date": until}) == seconds(0)
    for headers in ({}, {"retry-after": until}, {"retry-after": "soon", "date": sent}):
        assert retry_after(headers) is None
    reported = CloudError("slow down", cause="Throttled", retry_after=seconds(7))
    assert pause_before_repeat(
        reported, status=429, repeats=0, spent=Duration(0), patience=PATIENCE, draw=0
    ) == seconds(7)


def test_no_connection_is_no_answer():
    """A port that nobody listens on is an error that names the address."""

    async def main():
        async with HttpSender() as send:
            with pytest.raises(NoAnswer, match=r"127\.0\.0\.1"):
                await send(Request("GET", "http://127.0.0.1:9/"))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("exceptions", "asked"), [("", ["CONNECT compute.invalid:443 HTTP/1.1"]), ("invalid", [])]
)
def test_the_environment_says_by_which_proxy_a_cloud_is_reached(exceptions, asked):
    """https goes by it, unless NO_PROXY names the host; a metadata server is asked directly."""
    lines = []

    async def answer(reader, writer):
        lines.append((await reader.readline()).decode().strip())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def main():
        proxy = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        variables = {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": exceptions}
        async with proxy, HttpSender(variables, timeout=seconds(2)) as send:
            for url in ("https://compute.invalid/", "http://metadata.invalid/"):
                with pytest.raises(NoAnswer):
                    await send(Request("GET", url))

    asyncio.run(main())
    assert lines == asked


def test_a_proxy_that_cannot_be_used_is_named():
    """The error says which variable is wrong."""

    async def main():
        async with HttpSender({"HTTPS_PROXY": "socks5://p:1"}) as send:
            await send(Request("GET", "https://compute.example.com/"))

    with pytest.raises(CloudError, match="HTTPS_PROXY: scheme socks5"):
        asyncio.run(main())


def test_a_token_that_is_refused_before_its_end_is_made_anew():
    """A read is sent again with the new one, a change fails once; a token that was just made is not the reason."""
    clock, made, sent = Clock(), [], []

    async def make():
        made.append(len(made))
        return Until(str(len(made)), after(clock.now(), minutes(60)))

    async def send(request):
        sent.append(request.headers["Authorization"])
        return Response(200 if request.headers["Authorization"] == "Bearer 2" else 401)

    async def main():
        token = Renewed(make, clock)
        rest = Rest(send, clock, refusal, renew=token.forget)
        ask = partial(json_request, token, "GET", "http://cloud", {}, None)
        with pytest.raises(CloudError):
            await rest.read(ask)
        assert sent == ["Bearer 1"]
        await clock.sleep(minutes(2))
        await rest.read(ask)
        assert sent == ["Bearer 1", "Bearer 1", "Bearer 2"]
        await clock.sleep(minutes(56))
        with pytest.raises(CloudError):
            await rest.change(await ask())
        assert made == [0, 1, 2]

    asyncio.run(main())


@pytest.mark.parametrize("api", [alibaba, tencent], ids=["alibaba", "tencent"])
@pytest.mark.parametrize(("status", "cause"), [(429, "Throttled"), (401, "Permission"), (403, "Permission")])
def test_a_status_without_a_code_has_its_cause(api, status, cause):
    """A gateway's page has no code of the API; it waits as long as the page's header says."""
    error = api(Response(status, {"retry-after": "7"}, b"<html>"))
    assert (error.cause, error.retry_after) == (cause, seconds(7))
