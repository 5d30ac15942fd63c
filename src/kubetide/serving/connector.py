"""Connections of an HTTP client, which end with the client."""

from __future__ import annotations

import sys
from typing import Any

import aiohttp

_FORGETFUL = sys.version_info < (3, 12, 8)
"""Whether asyncio keeps a TLS connection for as long as its other end says no good-bye.

Source: https://github.com/python/cpython/pull/118960.
"""


def make_connector(**options: Any) -> aiohttp.TCPConnector:
    """Make aiohttp's connector with these options; closing it breaks off what is still saying good-bye.

    Without that a request that was cancelled shortly before the client is closed leaves its connection
    open, as aiohttp has forgotten it by then.
    """
    if _FORGETFUL:
        options["enable_cleanup_closed"] = True
    return aiohttp.TCPConnector(**options)
