"""Bytes that are equal exactly if values are: the keys of pod classes."""

from __future__ import annotations

from typing import Any

import msgspec

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def exact_key(value: Any) -> bytes:
    """Return the value as bytes; numbers that no int64 holds, which JSON allows, are written as text."""
    try:
        return _encoder.encode(value)
    except OverflowError:
        return repr(value).encode(errors="surrogatepass")
