"""Warnings that go with the answer to a request, whether it is refused or not.

Source: apiserver v1.36, endpoints/filters (warning); RFC 7234, section 5.5.
"""

from __future__ import annotations

import unicodedata

from aiohttp import web

_MOST = 4 * 1024
_MOST_EACH = 256
"""Characters of all warnings together, and of each once they are more."""


class Warnings:
    """What was warned of while one request was handled; a text that is said twice is sent once."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    @staticmethod
    def of(request: web.Request) -> Warnings:
        """Return the warnings of a request."""
        found = request.get(_KEY)
        if found is None:
            found = request[_KEY] = Warnings()
        return found

    def add(self, text: str) -> None:
        """Take in a warning; one that no header can hold is left out."""
        if text and not any(unicodedata.category(character) == "Cc" for character in text):
            self._texts[text] = None

    def headers(self) -> list[str]:
        """Return the values of the ``Warning`` headers."""
        texts = list(self._texts)
        if sum(map(len, texts)) > _MOST:
            texts = [text[:_MOST_EACH] for text in texts][: _MOST // _MOST_EACH]
        return [f'299 - "{_quotable(text)}"' for text in texts]


_KEY = web.RequestKey("warnings", Warnings)


async def send_warnings(request: web.Request, response: web.StreamResponse) -> None:
    """Add the warnings of a request to its answer, just before that is sent."""
    found = request.get(_KEY)
    if found is not None:
        for value in found.headers():
            response.headers.add("Warning", value)


def _quotable(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
