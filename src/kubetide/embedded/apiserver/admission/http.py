"""Calls webhooks over HTTPS, as kube-apiserver's client does.

Source: apiserver v1.36, util/webhook (client); client-go v0.36, rest (what it says of answers).
"""

from __future__ import annotations

import ssl
from functools import lru_cache

import aiohttp
import msgspec

from kubetide.embedded.apiserver.admission.caller import Address, CallError
from kubetide.serving import OwnsSession, make_connector

_LARGEST = 8 * 1024 * 1024
"""Bytes of an answer; a patch of the largest object that is stored is smaller."""

_CALLS_AT_ONCE = 32
"""To one address; more wait for their turn, within their time."""

_HEADERS = {
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}

# What client-go says of an answer that is no Status.
_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    415: "the server was unable to respond with a content type that the client supports",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class HttpCaller(OwnsSession):
    """Posts reviews over persistent connections; open it in the event loop that uses it.

    No redirect is followed, no proxy asked. A webhook that does not answer holds up the calls to its
    own address only.
    """

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=make_connector(limit=0, limit_per_host=_CALLS_AT_ONCE),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # the dispatcher keeps the time
            headers=_HEADERS,
        )

    async def call(self, address: Address, body: bytes) -> bytes:
        """Return the body of a good answer. Raises CallError in client-go's words."""
        if self._session is None:
            raise CallError("the caller of webhooks is closed")
        context = _context(address.authority)
        try:
            async with self._session.post(
                address.url, data=body, ssl=context, allow_redirects=False
            ) as response:
                answered = await _bounded(response)
                status = response.status
        except aiohttp.ClientError as error:
            raise CallError(f'Post "{address.url}": {_said(error)}') from error
        if not 200 <= status <= 206:
            # Only of a text does client-go quote what it says.
            text = answered if response.content_type.startswith("text/") else b""
            raise CallError(_refusal(status, answered, text.decode("utf-8", "replace").strip()))
        if not answered:
            kind = response.headers.get("Content-Type", "application/json")
            raise CallError(f"0-length response with status code: {status} and content type: {kind}")
        return answered


@lru_cache(maxsize=64)
def _context(authority: bytes) -> ssl.SSLContext:
    """Return what verifies a webhook's certificate. Raises CallError for an authority that is no PEM."""
    if not authority:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise CallError("unable to load root certificates: unable to parse bytes as PEM block") from error


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts = bytearray()
    async for part in response.content.iter_any():
        parts += part
        if len(parts) > _LARGEST:
            raise CallError(f"the answer is larger than {_LARGEST} bytes")
    return bytes(parts)


def _said(error: aiohttp.ClientError) -> str:
    """Return what Go would say of a connection that failed."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        if "issuer" in reason or "self-signed" in reason or "self signed" in reason:
            reason = "certificate signed by unknown authority"
        return f"tls: failed to verify certificate: x509: {reason}"
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        refused = isinstance(cause, ConnectionRefusedError)
        reason = "connection refused" if refused else cause.strerror or str(cause)
        return f"dial tcp {error.host}:{error.port}: connect: {reason}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _refusal(status: int, body: bytes, text: str) -> str:
    try:
        said = msgspec.json.decode(body)
    except msgspec.DecodeError:
        said = None
    if isinstance(said, dict) and said.get("kind") == "Status" and said.get("message"):
        return str(said["message"])
    if status in _TEXTS:
        return _TEXTS[status]
    if status >= 500:
        return f'an error on the server ("{text or "unknown"}") has prevented the request from succeeding'
    if 300 <= status < 400:
        return f"the server answered {status}, and redirects are not followed"
    return f"the server responded with the status code {status} but did not return more information"
