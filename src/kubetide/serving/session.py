"""Clients whose HTTP session is open as long as their context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import aiohttp


class OwnsSession(ABC):
    """An async context manager; ``_session`` is None outside of it."""

    _session: aiohttp.ClientSession | None = None

    @abstractmethod
    def _open(self) -> aiohttp.ClientSession:
        """Return a session, made in the event loop that uses it."""

    async def __aenter__(self) -> Self:
        self._session = self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
