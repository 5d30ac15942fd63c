"""Probes who serves an HPA: it changes a condition, and the HPA's controller restores it within a sync period.

Upstream's controller computes all conditions anew at every sync, and writes the status when it differs from the one
that it read (pkg/controller/podautoscaler, ``reconcileAutoscaler``, v1.36). So does this program. Only a command does
this, never a run by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.kinds import HPAS
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Conflict, NotFound
from kubetide.units.time import Duration, seconds

MESSAGE = "kubetide handover asks who serves this HPA; who does puts this right"
_LOOK = seconds(1)
_TRIES = 5


async def probe(cluster: Cluster, clock: Clock, keys: Sequence[Key], patience: Duration) -> dict[Key, str]:
    """Return, by HPA, the manager that restored it in time; an HPA without one is left out and restored.

    Args:
        keys: HPAs with a status; those without conditions show nothing and are left out, too.
        patience: How long to wait: two sync periods.

    Raises: ApiError where an HPA's status may not be read or written.
    """
    answers = await asyncio.gather(
        *(_probe_one(cluster, clock, key, patience) for key in keys), return_exceptions=True
    )
    found: dict[Key, str] = {}
    for key, answer in zip(keys, answers, strict=True):
        if isinstance(answer, BaseException):
            raise answer
        if answer:
            found[key] = answer
    return found


async def _probe_one(cluster: Cluster, clock: Clock, key: Key, patience: Duration) -> str:
    try:
        asked = await _change(cluster, key)
    except NotFound:  # deleted since it was listed
        return ""
    if asked is None:
        return ""
    before, conditions = asked
    deadline = clock.monotonic() + patience
    hpa = before
    try:
        while clock.monotonic() < deadline:
            await clock.sleep(_LOOK)
            try:
                hpa = await cluster.get(HPAS.untyped, key[1], namespace=key[0])
            except NotFound:
                return ""
            if not _is_asked(hpa):
                return _writer_since(before, hpa)
    finally:
        # Also where a person has no patience, or the API server fails in between.
        if _is_asked(hpa):
            # Somebody may just have put it right, or there is nothing to put right.
            with suppress(Conflict, NotFound):
                await _patch(cluster, key, {"conditions": conditions}, hpa["metadata"]["resourceVersion"])
    return ""


async def _change(cluster: Cluster, key: Key) -> tuple[Json, list[Any]] | None:
    """Change a condition; return the HPA as it is then, and the conditions as they were."""
    for _ in range(_TRIES):
        hpa = await cluster.get(HPAS.untyped, key[1], namespace=key[0])
        conditions = (hpa.get("status") or {}).get("conditions") or []
        if not conditions:
            return None
        at = next((i for i, one in enumerate(conditions) if one.get("type") == "AbleToScale"), 0)
        changed = [{**one, "message": MESSAGE} if i == at else one for i, one in enumerate(conditions)]
        try:
            return (
                await _patch(cluster, key, {"conditions": changed}, hpa["metadata"]["resourceVersion"]),
                conditions,
            )
        except Conflict:
            continue
    raise ApiError(f"HPA {'/'.join(key)} changes too often to ask who serves it; try again")


async def _patch(cluster: Cluster, key: Key, status: Json, version: str) -> Json:
    patch: Json = {"metadata": {"resourceVersion": version}, "status": status}
    found: Json = await cluster.patch(HPAS.untyped, key[1], patch, namespace=key[0], subresource="status")
    return found


def _is_asked(hpa: Json) -> bool:
    conditions = (hpa.get("status") or {}).get("conditions") or []
    return any(one.get("message") == MESSAGE for one in conditions)


def _writer_since(before: Json, after: Json) -> str:
    """Return the manager whose entry of the status is new or newer."""

    def entries(hpa: Json) -> dict[str, str]:
        return {
            one.get("manager", ""): one.get("time", "")
            for one in hpa["metadata"].get("managedFields") or []
            if one.get("subresource") == "status"
        }

    known = entries(before)
    found = {name: time for name, time in entries(after).items() if known.get(name) != time}
    # Within one second of the question the time proves nothing: then the latest of all but the asker.
    others = {name: time for name, time in entries(after).items() if not name.endswith("-handover")}
    return max(found or others, key=lambda name: (found or others)[name], default="")
