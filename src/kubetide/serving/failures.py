"""What is said of a request that got no answer."""

from __future__ import annotations

import aiohttp


def failure_text(error: Exception, otherwise: str) -> str:
    """Return why a request failed, without the innards of the client; ``otherwise`` where the error says nothing."""
    if not isinstance(error, aiohttp.ClientConnectorError):
        return str(error) or otherwise
    cause: BaseException = error.os_error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
    if isinstance(cause, ConnectionRefusedError):
        why = "connection refused"
    else:
        why = getattr(cause, "strerror", None) or str(cause) or otherwise
    return f"cannot connect to {error.host}:{error.port}: {why}"
