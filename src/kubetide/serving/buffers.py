"""How much memory a connection takes."""

from __future__ import annotations

from asyncio.sslproto import SSLProtocol

_BUFFER_BYTES = 32 * 1024


def bound_tls_buffers(size: int = _BUFFER_BYTES) -> None:
    """Let every TLS connection that this process makes from now on read into so many bytes.

    asyncio gives each one 256 kB and fills them with zeros, which is most of what an idle watch
    costs; a record of TLS has 16 kB at most, so a larger buffer saves few reads. There is no
    setting for it but this attribute of the class.
    """
    SSLProtocol.max_size = size
