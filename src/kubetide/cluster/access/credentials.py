"""What to show a server with a request: read, run and cached as the connection says.

Source: client-go v1.36: a token file is read anew once a minute and an unreadable one costs nothing while
an earlier token is there; a plug-in's credentials hold until they expire or the server refuses them. Files of
certificates are looked at as often (upstream: client certificates every five minutes).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from kubetide.cluster.access.connection import ConfigError, Connection, Impersonation
from kubetide.cluster.access.exec_plugin import Issued, PluginError, run_plugin
from kubetide.ports.clock import Clock
from kubetide.ports.errors import Unauthorized
from kubetide.units.time import Duration, minutes

_HELD = minutes(1)
"""How long what was read from a file is used."""

_HEADER_SAFE = "!#$&'*+-.^_`|~"

_LOG = logging.getLogger(__name__)


class Identity(NamedTuple):
    """What goes with one request: the headers that say who asks, and the TLS context (None for plain HTTP)."""

    headers: Sequence[tuple[str, str]]
    tls: ssl.SSLContext | None

    def __repr__(self) -> str:
        return f"Identity({', '.join(name for name, _ in self.headers)})"


class Credentials:
    """Keeps the identity of a connection fresh."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._acting_as = impersonation_headers(connection.impersonate)
        self._tls = connection.tls()
        self._identity: Identity | None = None
        self._read_at = Duration(0)
        self._issued: Issued | None = None
        self._looked_at: Duration | None = clock.monotonic()
        self._problem = ""
        self._busy = asyncio.Lock()

    async def current(self) -> Identity:
        """Return what to show now. Raises Unauthorized when there is nothing to show."""
        if self._is_fresh() and self._identity is not None:
            return self._identity
        async with self._busy:
            return self._identity if self._is_fresh() and self._identity is not None else await self._renew()

    async def refused(self, shown: Identity) -> bool:
        """Take in that the server refused this identity; whether there is another one to show now."""
        async with self._busy:
            if self._identity is not shown:
                return True  # another request has been through this already
            if (
                self._connection.plugin is None
                and self._connection.token_file is None
                and not self._has_files
            ):
                return False
            self._looked_at = None
            renewed = await self._renew(refused=True)
        return renewed.headers != shown.headers or renewed.tls is not shown.tls

    def doubt(self) -> None:
        """Have the files of certificates looked at before the next request: no connection could be trusted."""
        self._looked_at = None

    @property
    def _has_files(self) -> bool:
        return any(self._connection.files)

    def _is_fresh(self) -> bool:
        if self._identity is None or (self._has_files and not self._is_recent(self._looked_at)):
            return False
        if self._connection.plugin is not None:
            return self._plugin_holds()
        if self._connection.token_file is not None:
            return self._is_recent(self._read_at)
        return True

    def _is_recent(self, then: Duration | None) -> bool:
        return then is not None and self._clock.monotonic() - then < _HELD

    def _plugin_holds(self) -> bool:
        issued = self._issued
        return issued is not None and (issued.expires is None or self._clock.now() < issued.expires)

    async def _renew(self, *, refused: bool = False) -> Identity:
        if self._has_files and not self._is_recent(self._looked_at):
            self._look_at_files()
        token = self._connection.token
        if self._connection.plugin is not None:
            if refused or not self._plugin_holds():
                await self._run()
            token = self._issued.token if self._issued is not None else token
        elif self._connection.token_file is not None:
            token = self._read_token()
        authorization = [("Authorization", f"Bearer {token}")] if token else []
        made = Identity((*authorization, *self._acting_as), self._tls)
        # The same object while nothing has changed, so that a refusal is known to be of what is shown still.
        if self._identity is None or made != self._identity:
            self._identity = made
        return self._identity

    def _look_at_files(self) -> None:
        """Take over certificates that have been replaced; what cannot be used is logged once and passed over."""
        self._looked_at = self._clock.monotonic()
        issued = self._issued
        try:
            found = self._connection.read_anew()
            if found != self._connection:
                self._tls = found.tls(issued.certificate, issued.key) if issued else found.tls()
                self._connection = found
            problem = ""
        except ConfigError as error:
            # A certificate is often replaced before its key: the next look finds both.
            problem = str(error)
        if problem and problem != self._problem:
            _LOG.warning("the earlier certificates are used: %s", problem)
        self._problem = problem

    async def _run(self) -> None:
        assert self._connection.plugin is not None
        try:
            issued = await run_plugin(self._connection.plugin)
            same = self._issued is not None and self._issued.certificate == issued.certificate
            if not same and issued.certificate:
                self._tls = self._connection.tls(issued.certificate, issued.key)
        except (PluginError, ConfigError) as error:
            raise Unauthorized(f"getting credentials: {error}") from error
        self._issued = issued

    def _read_token(self) -> str:
        path = self._connection.token_file
        assert path is not None
        self._read_at = self._clock.monotonic()
        try:
            token, problem = path.read_text(encoding="ascii").strip(), "it is empty"
        except (OSError, UnicodeDecodeError) as error:
            token, problem = "", str(error)
        if token:
            return token
        earlier = self._token_shown() or self._connection.token
        if not earlier:
            raise Unauthorized(f"token file {path} cannot be read: {problem}")
        _LOG.warning("token file %s cannot be read, the earlier token is used: %s", path, problem)
        return earlier

    def _token_shown(self) -> str:
        headers = dict(self._identity.headers) if self._identity is not None else {}
        return headers.get("Authorization", "").removeprefix("Bearer ")


def impersonation_headers(acting: Impersonation | None) -> list[tuple[str, str]]:
    """Return the headers that ask to act as somebody else, keys of ``extra`` percent-encoded as upstream does."""
    if acting is None:
        return []
    headers = [("Impersonate-User", acting.user)]
    if acting.uid:
        headers.append(("Impersonate-Uid", acting.uid))
    headers += [("Impersonate-Group", group) for group in acting.groups]
    for key, values in acting.extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe=_HEADER_SAFE)}", value) for value in values]
    return headers
