"""The credentials of a client: tokens that change, plug-ins, whom it acts as, and its proxies."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from tests.cluster.answering import Later, answering, asking, config_map, status
from tests.cluster.served import served

from kubetide.cluster import ConfigError, Connection, ExecPlugin, HttpCluster, Impersonation
from kubetide.embedded.apiserver.http import ApiServer, Identities
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import CONFIG_MAPS, NAMESPACES
from kubetide.ports.errors import Forbidden, Unauthorized, Unavailable
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.units.time import format_rfc3339, minutes, seconds

V1 = "client.authentication.k8s.io/v1"

PLUGIN = """\
#!{python}
import json, os, pathlib, sys
folder = pathlib.Path({folder!r})
runs = folder / "runs"
count = len(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text("x" * count)
(folder / "told").write_text(os.environ["KUBERNETES_EXEC_INFO"] + os.environ.get("EXTRA", "") + "".join(sys.argv[1:]))
answer = (folder / "answer").read_text().replace("COUNT", str(count))
print(answer)
sys.exit(int((folder / "code").read_text()) if (folder / "code").exists() else 0)
"""


class Plugin:
    """A command in a folder that prints the content of a file and notes how it was run."""

    def __init__(self, folder):
        self.folder = folder
        command = folder / "login"
        command.write_text(PLUGIN.format(python=sys.executable, folder=str(folder)))
        command.chmod(0o755)
        self.made = ExecPlugin(V1, str(command), interactive_mode="Never")
        self.gives({"token": "token-COUNT"})

    def gives(self, said, version=V1):
        answer = {"kind": "ExecCredential", "apiVersion": version, "status": said}
        (self.folder / "answer").write_text(json.dumps(answer))

    @property
    def runs(self):
        runs = self.folder / "runs"
        return len(runs.read_text()) if runs.exists() else 0


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


class Doors:
    """A server that notes the headers of each request and lets in who shows one of the tokens."""

    def __init__(self, *tokens):
        self.tokens = set(tokens)
        self.seen = []

    async def __call__(self, request):
        self.seen.append(request.headers)
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens and shown not in self.tokens:
            return status(401, "Unauthorized")
        return web.json_response(config_map())

    @property
    def shown(self):
        return [headers.get("Authorization") for headers in self.seen]


async def read(client):
    return await client.get(CONFIG_MAPS, "a", namespace="default")


def test_a_plug_in_s_token_is_cached_until_it_expires(plugin):
    """Without a time it is cached for ever; after its time the command is run again."""

    async def main(real):
        clock = Later(real)
        doors = Doors()
        async with asking(doors, clock, connection=lambda url: Connection(url, plugin=plugin.made)) as client:
            await asyncio.gather(*(read(client) for _ in range(5)))
            assert (plugin.runs, set(doors.shown)) == (1, {"Bearer token-1"})
        doors = Doors()
        soon = format_rfc3339(clock.now() + seconds(3600))
        plugin.gives({"token": "token-COUNT", "expirationTimestamp": soon})
        async with asking(doors, clock, connection=lambda url: Connection(url, plugin=plugin.made)) as client:
            await read(client)
            clock.by += minutes(59)
            await read(client)
            assert plugin.runs == 2
            clock.by += minutes(2)
            await read(client)
            assert (plugin.runs, doors.shown[-1]) == (3, "Bearer token-3")

    run_real(main)


def test_a_refused_token_is_requested_again_once(plugin):
    """After 401 the command is run again and the request repeated; one that is refused again is an error."""

    async def main(clock):
        doors = Doors("token-2")
        async with asking(doors, clock, connection=lambda url: Connection(url, plugin=plugin.made)) as client:
            await asyncio.gather(*(read(client) for _ in range(5)))
            assert plugin.runs == 2
            doors.tokens = {"other"}
            with pytest.raises(Unauthorized):
                await read(client)
            assert plugin.runs == 3
            doors.tokens = {"token-4"}
            async with aclosing(client.watch(CONFIG_MAPS, resource_version="1")) as stream:
                assert await anext(stream) == ()
            assert plugin.runs == 4

    run_real(main)


def test_what_a_plug_in_is_reported(plugin):
    """Arguments, its own variables, and of the cluster what the kubeconfig allows it to know."""

    async def main(clock):
        reported = replace(
            plugin.made, args=("get", "it"), env={"EXTRA": "more"}, cluster={"server": "https://x"}
        )
        async with asking(Doors(), clock, connection=lambda url: Connection(url, plugin=reported)) as client:
            await read(client)
        assert (plugin.folder / "told").read_text() == (
            '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",'
            '"spec":{"interactive":false,"cluster":{"server":"https://x"}}}moregetit'
        )

    run_real(main)


@pytest.mark.parametrize(
    ("answer", "version", "said"),
    [
        ({}, V1, "exec plugin didn't return a token or cert/key pair"),
        (None, V1, "exec plugin didn't return a status field"),
        ({"clientCertificateData": "hush"}, V1, "exec plugin returned only certificate or key, not both"),
        (
            {"token": "hush"},
            f"{V1}beta1",
            "is configured to use API version client.authentication.k8s.io/v1, plugin",
        ),
        ({"token": "hush", "expirationTimestamp": "soon"}, V1, "expirationTimestamp that is no time"),
        (
            {"clientCertificateData": "hush", "clientKeyData": "hush"},
            V1,
            "client-certificate, client-key: cannot be",
        ),
    ],
)
def test_a_plug_in_that_gives_nothing_of_use(plugin, answer, version, said):
    """The error says what was wrong in upstream's words, and never what was printed."""
    plugin.gives(answer, version)

    async def main(clock):
        async with HttpCluster(Connection("https://127.0.0.1:1", plugin=plugin.made), clock) as client:
            with pytest.raises(Unauthorized) as error:
                await read(client)
        assert said in str(error.value)
        assert "hush" not in str(error.value)

    run_real(main)


def test_a_plug_in_that_is_missing_or_fails(plugin):
    """A missing command is reported with its hint, a failing one with its exit code, and it is tried anew."""

    async def main(clock):
        missing = ExecPlugin(V1, "kubetide-no-such-command", install_hint="get it from the shelf")
        async with HttpCluster(Connection("http://127.0.0.1:1", plugin=missing), clock) as client:
            with pytest.raises(Unauthorized) as error:
                await read(client)
        assert "exec: executable kubetide-no-such-command not found" in str(error.value)
        assert str(error.value).endswith("get it from the shelf")
        (plugin.folder / "code").write_text("3")
        async with asking(
            Doors(), clock, connection=lambda url: Connection(url, plugin=plugin.made)
        ) as client:
            with pytest.raises(Unauthorized, match="failed with exit code 3"):
                await read(client)
            (plugin.folder / "code").unlink()
            assert (await read(client)).metadata.name == "a"

    run_real(main)


def test_a_plug_in_that_must_talk_needs_a_terminal(plugin, monkeypatch):
    """interactiveMode Always is refused where standard input is no terminal."""

    async def main(clock):
        talks = replace(plugin.made, interactive_mode="Always")
        async with HttpCluster(Connection("http://127.0.0.1:1", plugin=talks), clock) as client:
            with pytest.raises(Unauthorized, match="standard input is not a terminal"):
                await read(client)

    with Path("/dev/null").open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        run_real(main)


def test_a_plug_in_s_certificate_is_shown(plugin):
    """A certificate from a command names the user, as one from the kubeconfig does."""

    async def main(clock):
        authority = Authority()
        server = ApiServer(
            EmbeddedCluster(Store(), clock).rest,
            clock,
            identities=Identities({}),
            tls=authority.server_context(["127.0.0.1"]),
        )
        await server.start()
        pair = authority.client("eve", ())
        plugin.gives({"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()})
        connection = Connection(server.url, authority=authority.certificate.decode(), plugin=plugin.made)
        async with HttpCluster(connection, clock) as client:
            with pytest.raises(Forbidden, match='User "eve"'):
                await client.get(NAMESPACES, "default")
        await server.stop()

    run_real(main)


def test_a_token_file_is_read_anew(tmp_path):
    """Once a minute, and at once after a refusal; a file that is away costs nothing while a token is known."""
    path = tmp_path / "token"
    path.write_text("one\n")

    async def main(real):
        clock = Later(real)
        doors = Doors()
        async with asking(doors, clock, connection=lambda url: Connection(url, token_file=path)) as client:
            await read(client)
            path.write_text("two")
            await read(client)
            assert doors.shown == ["Bearer one"] * 2
            clock.by += seconds(61)
            await read(client)
            path.unlink()
            clock.by += seconds(61)
            await read(client)
            assert doors.shown[2:] == ["Bearer two"] * 2
            doors.tokens = {"three"}
            with pytest.raises(Unauthorized):
                await read(client)
            path.write_text("three")
            await read(client)
            assert doors.shown[-2:] == ["Bearer two", "Bearer three"]

    run_real(main)


def test_a_token_file_that_never_was(tmp_path):
    """Without any token known, a file that cannot be read is an error that names it."""

    async def main(clock):
        path = tmp_path / "token"
        async with HttpCluster(Connection("http://127.0.0.1:1", token_file=path), clock) as client:
            with pytest.raises(Unauthorized, match=str(path)):
                await read(client)

    run_real(main)


def test_whom_to_act_as():
    """User, uid, groups and the rest go as headers, keys percent-encoded where a header may not hold them."""

    async def main(clock):
        doors = Doors()
        acting = Impersonation(
            "jane", "7", ("dev", "ops"), {"example.com/roles": ("a", "b"), "plain": ("c",)}
        )
        async with asking(doors, clock, connection=lambda url: Connection(url, impersonate=acting)) as client:
            await read(client)
        [headers] = doors.seen
        shown = [(name, value) for name, value in headers.items() if name.startswith("Impersonate")]
        assert shown == [
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Extra-example.com%2Froles", "a"),
            ("Impersonate-Extra-example.com%2Froles", "b"),
            ("Impersonate-Extra-plain", "c"),
        ]
        assert headers["User-Agent"].startswith("kubetide/")
        assert headers["Accept-Encoding"] == "gzip"

    run_real(main)


def test_a_server_s_certificate_may_bear_another_name():
    """tls-server-name is what the certificate must bear; without it the name of the URL."""

    async def main(clock):
        authority = Authority()
        async with answering(Doors(), tls=authority.server_context(["inner.example"])) as url:
            known = Connection(url, authority=authority.certificate.decode())
            async with HttpCluster(known, clock) as client:
                with pytest.raises(Unavailable, match="certificate"):
                    await read(client)
            async with HttpCluster(replace(known, server_name="inner.example"), clock) as client:
                assert (await read(client)).metadata.name == "a"

    run_real(main)


@asynccontextmanager
async def proxying(passed):
    """A proxy that notes whom it was asked to connect to, and with what password."""

    async def pipe(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def accept(reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        passed.append((lines[0], [line for line in lines if line.startswith("Proxy-Authorization")]))
        host, _, port = lines[0].split(" ")[1].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_https_goes_through_a_proxy():
    """HTTPS goes through a tunnel of the proxy, which is shown its own password and sees nothing else."""

    async def main(clock):
        passed = []
        async with served(clock) as (_, server, connection), proxying(passed) as port:
            through = replace(connection, proxy=f"http://me:secret@127.0.0.1:{port}")
            async with HttpCluster(through, clock) as client:
                assert (await client.get(NAMESPACES, "default")).metadata.name == "default"
            address = server.url.removeprefix("https://")
            assert passed == [(f"CONNECT {address} HTTP/1.1", ["Proxy-Authorization: Basic bWU6c2VjcmV0"])]

    run_real(main)


def test_material_that_is_no_pem_is_named():
    """A client made with an authority or certificate that cannot be used says which field is wrong."""
    with pytest.raises(ConfigError, match="certificate-authority"):
        Connection("https://x", authority="no PEM").tls()
    with pytest.raises(ConfigError, match="client-certificate, client-key"):
        Connection("https://x", certificate="no PEM", key="hush").tls()
