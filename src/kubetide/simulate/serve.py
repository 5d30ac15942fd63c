"""The embedded cluster of a live run on a socket, for kubectl and other clients.

Needs the extra ``kubetide[tls]``.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from kubetide.embedded.apiserver.http import ApiServer, Identities, User
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.ports.errors import KubetideError
from kubetide.serving.certificates import Authority
from kubetide.simulate.playground.playground import Playground
from kubetide.simulate.world import World

_ADMIN = User("kubetide-admin", ("system:masters",))


class ServeError(KubetideError):
    """An address that cannot be served on; the text gives the reason."""


class Address(NamedTuple):
    """A host and a port; port 0 is any free one."""

    host: str
    port: int


def parse_address(text: str) -> Address:
    """Return the address of ``127.0.0.1:6443``, ``[::1]:6443`` or ``localhost:0``. Raises ServeError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ServeError(f"--serve: `{text}` is not an address: write HOST:PORT, for example 127.0.0.1:6443")
    return Address(host.strip("[]"), int(port))


class Serving:
    """Serves a world while it runs, over HTTPS with its own token.

    Args:
        address: Where to listen.
        path: Where the kubeconfig is written, for its owner only; it is taken away at the end.
        tell: Takes the sentence that says how to reach the server.
    """

    def __init__(self, address: Address, path: Path, tell: Callable[[str], None]) -> None:
        self._address = address
        self._path = path
        self._tell = tell

    @asynccontextmanager
    async def beside(self, world: World) -> AsyncIterator[None]:
        """Serve inside the block. Raises ServeError if the address cannot be bound."""
        authority, token = Authority(), secrets.token_urlsafe(32)
        host, port = self._address
        hosts = list(dict.fromkeys((host, "localhost", "127.0.0.1", "::1")))
        playground = Playground(world)
        server = ApiServer(
            world.cluster.rest,
            world.clock,
            identities=Identities({token: _ADMIN}),
            front=world.cluster.front,
            metrics=world.metrics,
            custom=world.custom_metrics,
            external=world.external_metrics,
            extension=playground,
            tls=authority.server_context(hosts),
        )
        try:
            await server.start(host, port)
        except OSError as error:
            raise ServeError(f"--serve: cannot listen on {host}:{port}: {error.strerror}") from error
        try:
            write_kubeconfig(self._path, kubeconfig(server.url, token=token, authority=authority.certificate))
            self._tell(f"serving {server.url}; try: kubectl --kubeconfig {self._path} get pods")
            async with playground:
                yield
        finally:
            self._path.unlink(missing_ok=True)
            await server.stop()
