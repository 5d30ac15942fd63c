"""Paths beside the Kubernetes API that the program around a server answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kubetide.objects.base import Json


class Extension(Protocol):
    """Answers the paths below ``prefix``; who asks needs a rule for them as for any path that is no resource."""

    @property
    def prefix(self) -> str:
        """What all of its paths begin with, such as ``/example/v1/``."""
        ...

    async def answer(self, method: str, path: str, query: Mapping[str, str], body: Any, user: str) -> Json:
        """Return the answer to a request.

        Args:
            path: The rest behind the prefix.
            body: The value of the body; None for none.
            user: The name of who asks.
        Raises: ApiError for a refusal.
        """
        ...
