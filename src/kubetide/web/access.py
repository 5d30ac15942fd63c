"""Access control by a token: in the printed address, in a cookie from then on, or as a bearer token."""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple, Protocol

from aiohttp import web

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer. A page of ours loads nothing but ours, and no other page can hold it."""


_WRONG: Final = (
    "no token, or a wrong one: open the address that `kubetide ui` printed; where it has none, "
    "write ?token= and that of --token-file behind it"
)


class Refusal(NamedTuple):
    """Why access is denied, with the HTTP status."""

    status: int
    text: str


class Access(Protocol):
    """Decides who has access."""

    async def refusal(self, token: str) -> Refusal | None:
        """Return why a token (empty for none) is denied access; None if it is not."""
        ...


class OwnToken:
    """Grants access to holders of the one token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def refusal(self, token: str) -> Refusal | None:
        """Compare the tokens in constant time."""
        if hmac.compare_digest(token.encode(errors="surrogateescape"), self._token):
            return None
        return Refusal(401, _WRONG)


def token_given(request: web.Request) -> str:
    """Return the token of a request: a bearer token, the cookie's, or the address's."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    return request.query.get("token") or request.cookies.get(_cookie(request), "")


def keep_token(request: web.Request, response: web.StreamResponse, token: str) -> None:
    """Make the browser store the token for this server only, hidden from scripts."""
    # Where TLS ends before us its header says so; a client that makes it up keeps its own cookie back.
    secure = request.secure or request.headers.get("X-Forwarded-Proto", "") == "https"
    response.set_cookie(_cookie(request), token, httponly=True, samesite="Strict", path="/", secure=secure)


def _cookie(request: web.Request) -> str:
    # Browsers share cookies between the ports of a host; two dashboards of one machine must not.
    return f"kubetide-{request.url.port}"
