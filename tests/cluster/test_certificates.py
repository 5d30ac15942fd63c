"""Certificates, keys and authorities in files that are replaced while a client lives."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.cluster.answering import Later
from tests.cluster.faults.kinds import answers
from tests.cluster.faults.proxy import AUTHORITY, HOST, proxied
from tests.cluster.served import served

from kubetide.cluster import Connection, HttpCluster, PemFiles, load_kubeconfig
from kubetide.embedded.apiserver.http import ApiServer, Identities
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import NAMESPACES
from kubetide.ports.errors import Forbidden, Unauthorized, Unavailable
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.units.time import minutes

AUTHORITY_OF_USERS = Authority()
ADMIN = AUTHORITY_OF_USERS.client("admin", ["system:masters"])
EVE = AUTHORITY_OF_USERS.client("eve")


async def read(client):
    return (await client.get(NAMESPACES, "default")).metadata.name


class Files:
    """A client's certificate and key, and an authority, in files."""

    def __init__(self, folder):
        self.made = PemFiles(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")

    def put(self, pair=None, authority=None):
        if pair is not None:
            self.made.certificate.write_bytes(pair.certificate)
            self.made.key.write_bytes(pair.key)
        if authority is not None:
            self.made.authority.write_bytes(authority.certificate)

    def connection(self, url):
        return Connection(url, files=self.made).read_anew()


@asynccontextmanager
async def knowing_users(real, files):
    """Yield a client of a server that knows its users by certificates, and the client's clock."""
    clock = Later(real)
    server = ApiServer(
        EmbeddedCluster(Store(), real).rest,
        real,
        identities=Identities({}),
        tls=AUTHORITY_OF_USERS.server_context([HOST]),
    )
    await server.start()
    try:
        async with HttpCluster(files.connection(server.url), clock) as client:
            yield client, clock
    finally:
        await server.stop()


def test_another_client_certificate_is_shown(tmp_path):
    """Within a minute, without a new client."""
    files = Files(tmp_path)
    files.put(EVE, AUTHORITY_OF_USERS)

    async def main(real):
        async with knowing_users(real, files) as (client, clock):
            with pytest.raises(Forbidden, match='User "eve"'):
                await read(client)
            files.put(ADMIN)
            with pytest.raises(Forbidden, match='User "eve"'):
                await read(client)
            clock.by += minutes(1)
            assert await read(client) == "default"

    run_real(main)


def test_a_refused_certificate_is_looked_for_at_once(tmp_path):
    """After a 401 the files are read before the request is given up, and it is sent once more."""
    files = Files(tmp_path)
    files.put(EVE, AUTHORITY_OF_USERS)

    async def main(real):
        async with served(real) as (_, _, connection), proxied(connection) as (proxy, _):
            asked, refuse = [], answers(401, "Unauthorized")

            async def door(exchange):
                shown = exchange.request.transport.get_extra_info("peercert")
                names = dict(part[0] for part in shown["subject"])
                asked.append(names["commonName"])
                return None if names["commonName"] == "admin" else await refuse(exchange)

            await proxy.be_unreachable()
            proxy._front = AUTHORITY_OF_USERS.server_context([HOST])
            await proxy.listen()
            proxy.set(door)
            shown = replace(files.connection(proxy.url), token=connection.token)
            async with HttpCluster(shown, real) as client:
                with pytest.raises(Unauthorized):
                    await read(client)
                assert asked == ["eve"], "there was nothing else to show"
                files.put(ADMIN)
                assert await read(client) == "default"
                assert asked == ["eve", "eve", "admin"]

    run_real(main)


@pytest.mark.parametrize("spoilt", ["certificate", "key", "authority"])
@pytest.mark.parametrize("content", [b"", b"no PEM", None])
def test_what_cannot_be_used_is_passed_over(tmp_path, caplog, spoilt, content):
    """An empty file, another text or no file: the earlier certificates stay in use, and one message says so."""
    files = Files(tmp_path)
    files.put(ADMIN, AUTHORITY_OF_USERS)

    async def main(real):
        async with knowing_users(real, files) as (client, clock):
            assert await read(client) == "default"
            path = getattr(files.made, spoilt)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            for _ in range(3):
                clock.by += minutes(1)
                assert await read(client) == "default"
            assert len([one for one in caplog.records if "earlier certificates are used" in one.message]) == 1
            files.put(EVE, AUTHORITY_OF_USERS)
            clock.by += minutes(1)
            with pytest.raises(Forbidden, match='User "eve"'):
                await read(client)

    run_real(main)


def test_a_certificate_whose_key_is_yet_to_come(tmp_path):
    """Between the two writes of a renewal the earlier pair is shown."""
    files = Files(tmp_path)
    files.put(ADMIN, AUTHORITY_OF_USERS)

    async def main(real):
        async with knowing_users(real, files) as (client, clock):
            files.made.certificate.write_bytes(EVE.certificate)
            clock.by += minutes(1)
            assert await read(client) == "default"
            files.made.key.write_bytes(EVE.key)
            clock.by += minutes(1)
            with pytest.raises(Forbidden):
                await read(client)

    run_real(main)


def test_another_authority_is_trusted_once_it_is_in_its_file(tmp_path):
    """The server has a certificate of a new authority: refused, and after the file is replaced taken at once."""
    file, other = tmp_path / "ca.crt", Authority()
    file.write_bytes(AUTHORITY.certificate)

    async def main(clock):
        async with served(clock) as (_, _, connection), proxied(connection) as (proxy, front):
            shown = replace(front, files=PemFiles(authority=file))
            async with HttpCluster(shown, clock) as client:
                assert await read(client) == "default"
                await proxy.be_unreachable()
                proxy._front = other.server_context([HOST])
                await proxy.listen()
                for _ in range(2):
                    with pytest.raises(Unavailable, match="certificate verify failed"):
                        await read(client)
                file.write_bytes(other.certificate)
                # The refusals above have made the client look again.
                assert await read(client) == "default"

    run_real(main)


def test_where_the_files_are(tmp_path):
    """The files that a kubeconfig names are known by their paths; data inside the kubeconfig has none."""
    pair = AUTHORITY_OF_USERS.client("admin")
    for name, data in (("ca", AUTHORITY_OF_USERS.certificate), ("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(data)
    config = tmp_path / "config"
    text = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: a, user: b}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443", certificate-authority: ca}}]
users: [{name: b, user: {client-certificate: crt, client-key: key}}]
"""
    config.write_text(text)
    found = load_kubeconfig(config)
    assert found.files == PemFiles(tmp_path / "ca", tmp_path / "crt", tmp_path / "key")
    assert found.read_anew() == found
    config.write_text(text.replace("certificate-authority: ca", "certificate-authority-data: "))
    assert load_kubeconfig(config).files.authority is None
