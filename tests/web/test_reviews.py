"""Access to a dashboard, as the API server decides: the embedded one, and answers in virtual time."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
from click.testing import CliRunner
from tests.cluster.served import ADMIN, TOKEN, served
from tests.web.reviewing import ASKING, LOOKING, PATHS, allowed_paths, grant, statuses, take_away, user

from kubetide.cli.main import cli
from kubetide.cluster import Connection, HttpCluster
from kubetide.embedded.apiserver.http import Identities, User
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import BadRequest, Forbidden, Unavailable
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.serving.listener import Listener
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.web.history import History
from kubetide.web.reviews import ACCESS_REVIEWS, KNOWN_FOR, PATH, TOKEN_REVIEWS, ReviewedAccess
from kubetide.web.serve import serve
from kubetide.web.server import API, Dashboard

SELF_REVIEWS = Kind(
    "authorization.k8s.io",
    "v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    dict,
    namespaced=False,
)
IDENTITIES = {TOKEN: ADMIN, "ui": User("ui"), "ann": User("ann"), "bob": User("bob")}


def test_the_embedded_server_says_who_may_look(tmp_path):
    """A known user with the right sees pages; one without gets the name of the right; strangers need a token."""

    async def main(clock):
        async with (
            served(clock, identities=Identities(IDENTITIES)) as (_, server, connection),
            HttpCluster(connection, clock) as admin,
        ):
            own = Connection(server.url, "ui", connection.authority)
            before = await statuses(tmp_path, own, clock, ["ann"])
            await grant(admin, "kubetide-ui", ASKING, user("ui"))
            await grant(admin, "kubetide-ui-viewer", LOOKING, user("ann"))
            found = await statuses(tmp_path, own, clock, ["ann", "bob", "eve", "", TOKEN])
            await take_away(admin, "kubetide-ui-viewer")
            return before, found, await statuses(tmp_path, own, clock, ["ann"])

    before, found, after = run_real(main)
    assert (before[0][0], "may not ask the API server" in before[0][1]) == (503, True)
    assert [status for status, _ in found] == [200, 403, 401, 401, 200]
    assert f"bob may not look: a ClusterRole with get on nonResourceURLs {PATH}" in found[1][1]
    assert "kubectl create token" in found[2][1]
    assert after[0][0] == 403


def test_a_token_of_the_address_becomes_a_cookie(tmp_path):
    """A browser is authorized once by the address, and by its cookie from then on."""

    async def main(clock):
        async with (
            served(clock) as (_, _, connection),
            HttpCluster(connection, clock) as cluster,
        ):
            listener = Listener(Dashboard(History(tmp_path), ReviewedAccess(cluster, clock), clock).app())
            await listener.listen("127.0.0.1")
            try:
                jar = aiohttp.CookieJar(unsafe=True)
                async with aiohttp.ClientSession(cookie_jar=jar) as session:
                    url = f"http://{listener.authority}/decisions"
                    async with session.get(f"{url}?token={TOKEN}") as first:
                        assert (first.status, first.url.query_string) == (200, "")
                    async with session.get(url) as second:
                        status = second.status
                    behind = {"X-Forwarded-Proto": "https"}
                    asked = f"{url}?token={TOKEN}"
                    async with session.get(asked, headers=behind, allow_redirects=False) as third:
                        return status, third.headers["Set-Cookie"]
            finally:
                await listener.close()

    status, cookie = run_real(main)
    assert status == 200
    assert {"HttpOnly", "Secure", "SameSite=Strict"} <= set(cookie.split("; "))


def test_reviews_of_paths():
    """The embedded server allows the paths that kube-apiserver allows, by group; its own review of oneself agrees."""

    async def main(clock):
        async with (
            served(clock, identities=Identities(IDENTITIES)) as (_, server, connection),
            HttpCluster(connection, clock) as admin,
            HttpCluster(Connection(server.url, "bob", connection.authority), clock) as bob,
        ):
            await grant(admin, "lookers", LOOKING, {**user("lookers"), "kind": "Group"})
            own = []
            for path in ("/healthz", PATH):
                asked = {"nonResourceAttributes": {"path": path, "verb": "get"}}
                own.append((await bob.create(SELF_REVIEWS, {"spec": asked}))["status"]["allowed"])
            return await allowed_paths(admin), own

    assert run_real(main) == ([one[3] for one in PATHS], [True, False])


class Reviewer:
    """An API server that knows ``ann`` (who may look) and ``bob`` (who may not), and counts what it is asked."""

    def __init__(self, clock):
        self.clock = clock
        self.asked = 0
        self.most = self.under_way = 0
        self.down = False
        self.knows = {"ann", "bob"}

    async def create(self, kind, body, *, namespace=""):
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.clock.sleep(seconds(1))
        finally:
            self.under_way -= 1
        if self.down:
            raise Unavailable("connection refused")
        if kind == TOKEN_REVIEWS:
            token = body["spec"]["token"]
            known = token in self.knows
            return {"status": {"authenticated": known, "user": {"username": token, "groups": ["g"]}}}
        assert kind == ACCESS_REVIEWS
        assert body["spec"]["nonResourceAttributes"] == {"path": PATH, "verb": "get"}
        return {"status": {"allowed": body["spec"]["user"] == "ann"}}


def reviewed(story):
    async def main(clock):
        server = Reviewer(clock)
        return await story(server, ReviewedAccess(server, clock), clock)

    return run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))


def test_an_answer_holds_for_a_while():
    """A token is reviewed once in half a minute; after that what the API server says by then holds."""

    async def story(server, access, clock):
        assert await access.refusal("ann") is None
        assert (await access.refusal("bob")).status == 403
        assert (await access.refusal("ann"), server.asked) == (None, 4)
        server.knows.discard("ann")
        await clock.sleep(KNOWN_FOR)
        assert (await access.refusal("ann")).status == 401

    reviewed(story)


def test_a_thousand_requests_with_one_token_are_one_review():
    """Simultaneous requests wait for the same review; different tokens are reviewed a few at a time, and up to a maximum."""

    async def story(server, access, clock):
        found = await asyncio.gather(*(access.refusal("ann") for _ in range(1000)))
        assert (set(found), server.asked) == ({None}, 2)
        found = await asyncio.gather(*(access.refusal(f"eve-{n}") for n in range(200)))
        assert server.most == 8
        assert {one.status for one in found} == {401, 503}
        assert (await access.refusal("\udcff")).status == 401

    reviewed(story)


def test_an_api_server_that_is_down_lets_nobody_in_and_nobody_out():
    """An unanswered review is not cached: known people go on for their half minute, others get 503 until it is back."""

    async def story(server, access, clock):
        assert await access.refusal("ann") is None
        server.down = True
        assert await access.refusal("ann") is None
        assert (await access.refusal("bob")).status == 503
        server.down = False
        assert (await access.refusal("bob")).status == 403

    reviewed(story)


def test_a_stream_ends_when_the_right_is_withdrawn(tmp_path):
    """A listener whose token is no longer accepted gets no more events."""

    class Once:
        left = 2

        async def refusal(self, token):
            from kubetide.web.access import Refusal

            self.left -= 1
            return None if self.left >= 0 else Refusal(401, "gone")

    async def main(clock):
        listener = Listener(Dashboard(History(tmp_path), Once(), clock).app())
        await listener.listen("127.0.0.1")
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://{listener.authority}{API}/events") as answer,
            ):
                reported = await answer.content.readany()
                (tmp_path / "records").mkdir()
                (tmp_path / "records" / "nodes-0001.jsonl").write_text("{}\n")
                rest = await answer.content.read()
                return reported + rest
        finally:
            await listener.close()

    assert b"event: grown" not in run_real(main)


@pytest.mark.parametrize(
    ("kind", "spec", "error"),
    [
        (TOKEN_REVIEWS, {}, BadRequest),
        (ACCESS_REVIEWS, {"user": "ann"}, BadRequest),
        (ACCESS_REVIEWS, {"nonResourceAttributes": {"path": "/", "verb": "get"}}, BadRequest),
    ],
)
def test_reviews_that_ask_nothing(kind, spec, error):
    """The embedded server refuses a review without a question, and one by somebody without the right."""

    async def main(clock):
        async with served(clock, identities=Identities(IDENTITIES)) as (_, server, connection):
            async with HttpCluster(connection, clock) as admin:
                with pytest.raises(error):
                    await admin.create(kind, {"spec": spec})
            stranger = Connection(server.url, "bob", connection.authority)
            async with HttpCluster(stranger, clock) as bob:
                with pytest.raises(Forbidden):
                    await bob.create(kind, {"spec": {"token": "ann", "user": "ann"}})

    run_real(main)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kubernetes-access", "--token-file", "t"), "choose one"),
        (("--context", "staging"), "belong to --kubernetes-access"),
        (("--listen", "0.0.0.0:0"), "--kubernetes-access"),
        (("--listen", ":0"), "--kubernetes-access"),
        (("--kubernetes-access", "--kubeconfig", "none-there"), "none-there"),
    ],
)
def test_flags_that_do_not_fit(tmp_path, monkeypatch, words, said):
    """Two ways to say who may look, or a part of one, are reported."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["ui", *words])
    assert result.exit_code != 0
    assert said in result.output + str(result.exception)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_without_a_host_it_listens_on_all_addresses(tmp_path):
    """In a cluster of IPv6 only, the kubelet probes an address of IPv6."""

    class Reached(Exception):
        pass

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def reach(_line):
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=10).close()
        raise Reached

    with pytest.raises(Reached):
        serve(tmp_path, f":{port}", None, say=reach, api_server=Connection("http://127.0.0.1:1", TOKEN))
