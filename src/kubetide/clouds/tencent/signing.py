"""Tencent Cloud's request signature, version 3 (TC3-HMAC-SHA256).

Source: Tencent Cloud API 3.0, "Signature v3".
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from kubetide.clouds.common.tokens import Keys

ALGORITHM = "TC3-HMAC-SHA256"


class Stamp(NamedTuple):
    """When a request is signed: seconds since 1970, and that day in UTC, ``2019-02-25``."""

    seconds: int
    day: str


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), sha256).digest()


def authorization(keys: Keys, stamp: Stamp, service: str, headers: Mapping[str, str], body: bytes) -> str:
    """Return the ``Authorization`` of a POST of ``body`` to ``/``; all of ``headers`` (lower case) are signed.

    ``content-type`` and ``host`` must be among them.
    """
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip().lower()}\n" for name in sorted(headers))
    canonical = "\n".join(("POST", "/", "", lines, names, sha256(body).hexdigest()))
    scope = f"{stamp.day}/{service}/tc3_request"
    to_sign = "\n".join((ALGORITHM, str(stamp.seconds), scope, sha256(canonical.encode()).hexdigest()))
    key = _keyed(_keyed(_keyed(f"TC3{keys.secret}".encode(), stamp.day), service), "tc3_request")
    signature = hmac.new(key, to_sign.encode(), sha256).hexdigest()
    return f"{ALGORITHM} Credential={keys.id}/{scope}, SignedHeaders={names}, Signature={signature}"
