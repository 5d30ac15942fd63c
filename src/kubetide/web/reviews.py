"""Access control by the API server: a TokenReview for identity, a SubjectAccessReview for permission."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Final, NamedTuple

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Forbidden
from kubetide.units.time import Duration, seconds
from kubetide.web.access import Refusal

TOKEN_REVIEWS: Final[Kind[Json]] = Kind(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", dict, namespaced=False
)
ACCESS_REVIEWS: Final[Kind[Json]] = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", dict, namespaced=False
)

PATH: Final = "/kubetide/dashboard"
"""What a role grants ``get`` on to those who may look. Of no server: the paths of a dashboard, below ``/api/``, may be
read by everybody who is known to a cluster (its role ``system:discovery``)."""

KNOWN_FOR: Final = seconds(30)
"""How long an answer about a token holds; so long a right that was taken away goes on."""

_MOST_KNOWN = 1024
_MOST_ASKED = 8
"""Reviews that are under way at once."""
_MOST_WAITING = 64
"""Tokens that wait for a review; more are sent away."""


class _Known(NamedTuple):
    refusal: Refusal | None
    until: Duration


class ReviewedAccess:
    """Grants access to those whom the API server knows by their token and allows ``get`` on ``PATH``.

    Answers are cached for half a minute by a digest of the token; what the API server did not answer is not.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known: dict[bytes, _Known] = {}
        self._asked: dict[bytes, asyncio.Lock] = {}
        self._turns = asyncio.Semaphore(_MOST_ASKED)

    async def refusal(self, token: str) -> Refusal | None:
        """Return why a token is denied access; None if it is not."""
        if not token or not token.isascii():
            return Refusal(401, _HOW)
        key = hashlib.sha256(token.encode()).digest()
        known = self._known.get(key)
        if known is not None and self._clock.monotonic() < known.until:
            return known.refusal
        if len(self._asked) >= _MOST_WAITING:
            return Refusal(503, "too many are being looked up at once; ask again")
        lock = self._asked.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                known = self._known.get(key)
                if known is not None and self._clock.monotonic() < known.until:
                    return known.refusal
                return await self._review(key, token)
        finally:
            if not lock.locked():
                self._asked.pop(key, None)

    async def _review(self, key: bytes, token: str) -> Refusal | None:
        try:
            async with self._turns:
                refusal = await self._reviewed(token)
        except Forbidden as error:
            return Refusal(503, f"this dashboard may not ask the API server who may look: {error}")
        except ApiError as error:
            return Refusal(503, f"the API server cannot be asked who may look: {error}")
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = _Known(refusal, Duration(self._clock.monotonic() + KNOWN_FOR))
        return refusal

    async def _reviewed(self, token: str) -> Refusal | None:
        """Return what both reviews come to. Raises ApiError."""
        review = await self._cluster.create(TOKEN_REVIEWS, {"spec": {"token": token}})
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return Refusal(401, f"the API server does not know this token, or it has expired: {_HOW}")
        user: dict[str, Any] = status.get("user") or {}
        asked = {
            "user": user.get("username") or "",
            "groups": user.get("groups") or [],
            "uid": user.get("uid") or "",
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        answer = await self._cluster.create(ACCESS_REVIEWS, {"spec": asked})
        if not (answer.get("status") or {}).get("allowed"):
            return Refusal(
                403,
                f"{asked['user']} may not look: a ClusterRole with get on nonResourceURLs {PATH} allows it",
            )
        return None


_HOW = "send one as a bearer token, or once as ?token=$(kubectl create token ACCOUNT)"
