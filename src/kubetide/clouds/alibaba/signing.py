"""Alibaba Cloud's request signature, version 3 (ACS3-HMAC-SHA256).

Source: Alibaba Cloud, "Request structure and signature of V3".
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

from kubetide.clouds.common.tokens import Keys

ALGORITHM = "ACS3-HMAC-SHA256"


class Call(NamedTuple):
    """What is signed besides the query: action and version of the API, the host, time and a word used once.

    ``date`` is UTC, ``2023-10-26T10:22:32Z``.
    """

    action: str
    version: str
    host: str
    date: str
    nonce: str


def _escaped(text: str) -> str:
    return quote(text, safe="-_.~")


def query_string(query: Mapping[str, str]) -> str:
    """Return the parameters in order, escaped as the signature expects them."""
    return "&".join(f"{_escaped(key)}={_escaped(query[key])}" for key in sorted(query))


def signed_headers(
    keys: Keys, call: Call, query: Mapping[str, str], *, method: str = "POST", body: bytes = b""
) -> dict[str, str]:
    """Return the headers of a signed request, ``Authorization`` among them."""
    digest = sha256(body).hexdigest()
    headers = {
        "host": call.host,
        "x-acs-action": call.action,
        "x-acs-content-sha256": digest,
        "x-acs-date": call.date,
        "x-acs-signature-nonce": call.nonce,
        "x-acs-version": call.version,
    }
    if keys.token:
        headers["x-acs-security-token"] = keys.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    canonical = "\n".join((method, "/", query_string(query), lines, names, digest))
    to_sign = f"{ALGORITHM}\n{sha256(canonical.encode()).hexdigest()}"
    signature = hmac.new(keys.secret.encode(), to_sign.encode(), sha256).hexdigest()
    headers["Authorization"] = f"{ALGORITHM} Credential={keys.id},SignedHeaders={names},Signature={signature}"
    return headers
