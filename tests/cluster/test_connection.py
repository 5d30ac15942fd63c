"""Kubeconfigs, certificates, and what a client says when the server cannot be had."""

from __future__ import annotations

import ssl

import pytest
from tests.cluster.served import served, with_client

from kubetide.cluster import Connection, HttpCluster, KubeconfigError, load_kubeconfig
from kubetide.embedded.apiserver.http import ApiServer, Identities
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import CONFIG_MAPS, NAMESPACES
from kubetide.ports.errors import Forbidden, Unauthorized, Unavailable
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders


def test_a_kubeconfig_goes_round(tmp_path):
    """The client reads the file that the server writes, for its owner only."""
    path = tmp_path / "deep" / "kubeconfig"
    authority = Authority()
    for token in ("old", "new"):
        config = kubeconfig("https://127.0.0.1:1", token=token, authority=authority.certificate)
        write_kubeconfig(path, config)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_kubeconfig(path) == Connection("https://127.0.0.1:1", "new", authority.certificate.decode())
    assert [entry.name for entry in path.parent.iterdir()] == ["kubeconfig"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be read as a kubeconfig"),
        ("[]", "its top is not a map"),
        ("{}", "current-context is empty"),
        ("{current-context: a}", 'contexts holds no context named "a"'),
        (
            (
                "{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], clusters: [{name: c,"
                " cluster: {server: 'https://x'}}], users: [{name: u, user: {exec: {command: x}}}]}"
            ),
            "apiVersion must be specified for u",
        ),
    ],
)
def test_kubeconfigs_that_cannot_be_used(tmp_path, text, said):
    """An error names the file, the entry and the fix."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError) as error:
        load_kubeconfig(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_a_token_is_not_shown():
    """A connection that is printed hides its secrets."""
    assert "hush" not in repr(Connection("https://x", token="hush", key="hush"))


def test_a_client_certificate_names_a_user():
    """The common name is the user and the organizations are the groups, so what they may do follows."""

    async def main(clock):
        authority = Authority()
        server = ApiServer(
            EmbeddedCluster(Store(), clock).rest,
            clock,
            identities=Identities({}),
            tls=authority.server_context(["127.0.0.1", "localhost"]),
        )
        await server.start()

        def client(user, *groups):
            pair = authority.client(user, groups)
            return HttpCluster(
                Connection(
                    server.url,
                    authority=authority.certificate.decode(),
                    certificate=pair.certificate.decode(),
                    key=pair.key.decode(),
                ),
                clock,
            )

        async with client("admin", "system:masters") as admin, client("eve") as eve:
            assert (await admin.get(NAMESPACES, "default")).metadata.name == "default"
            with pytest.raises(Forbidden, match='User "eve" cannot get resource "namespaces"'):
                await eve.get(NAMESPACES, "default")
        await server.stop()

    run_real(main)


def test_who_cannot_be_reached_is_unavailable():
    """No listener, no token and a certificate of somebody else are errors of the port."""

    async def main(clock):
        async with served(clock) as (_, _, connection):
            known = connection.authority
            async with HttpCluster(Connection(connection.url, "wrong", known), clock) as client:
                with pytest.raises(Unauthorized):
                    await client.list(CONFIG_MAPS)
            other = Authority().certificate.decode()
            async with HttpCluster(Connection(connection.url, "x", other), clock) as client:
                with pytest.raises(Unavailable):
                    await client.list(CONFIG_MAPS)
        async with HttpCluster(connection, clock) as client:
            with pytest.raises(Unavailable):
                await client.list(CONFIG_MAPS)

    run_real(main)


def test_plain_http_needs_no_context():
    """TLS is for https addresses; without verification nothing is checked."""
    assert Connection("http://x").tls() is None
    assert Connection("https://x", verify=False).tls().verify_mode == ssl.CERT_NONE


def test_a_large_body():
    """The largest ConfigMap that there may be is sent in pieces, and without a warning."""

    async def main(client, _, __):
        body = builders.config_map("a", data={"all": "x" * (1 << 20)})
        await client.create(CONFIG_MAPS, body, namespace="default")
        assert len((await client.get(CONFIG_MAPS, "a", namespace="default")).data["all"]) == 1 << 20

    with_client(main)
