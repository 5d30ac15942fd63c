"""The port through which webhooks are called. Nothing is called where none is given in."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class CallError(Exception):
    """A call without an answer; the text is what client-go says of it."""


class Address(NamedTuple):
    """Where a webhook listens; ``authority`` is the PEM that its certificate must be signed by, empty for the system's."""

    url: str
    authority: bytes


class Caller(Protocol):
    """Posts reviews. Whoever calls it keeps the time-out and cancels what lasts too long."""

    async def call(self, address: Address, body: bytes) -> bytes:
        """Return the body of a good answer. Raises CallError."""
        ...
