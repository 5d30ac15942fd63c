"""What a delete does to an object: remove it now, or mark it and wait.

Source: apiserver v1.36, registry/rest BeforeDelete and the generic store's delete; the graceful
deletion of the pod strategy.
"""

from __future__ import annotations

from typing import Any, cast

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.cluster import Propagation
from kubetide.units.time import Instant, after, before, format_rfc3339, parse_rfc3339, seconds

FOREGROUND = "foregroundDeletion"
"""The finalizer that holds an owner until its blocking dependents are gone."""

_DEFAULT_POD_GRACE_S = 30


def is_deleting(json: Json) -> bool:
    """Return whether deletion has been asked for."""
    return bool(json["metadata"].get("deletionTimestamp"))


def is_complete(json: Json) -> bool:
    """Return whether nothing holds an object any more whose deletion has been asked for."""
    meta = json["metadata"]
    return bool(
        meta.get("deletionTimestamp")
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    )


def finalizers_after(json: Json, propagation: Propagation, *, hold: bool) -> list[str]:
    """Return the finalizers as a delete leaves them: ``hold`` asks for the foreground one."""
    remaining = [
        name for name in json["metadata"].get("finalizers") or () if name not in {FOREGROUND, "orphan"}
    ]
    if propagation == "Foreground" and hold:
        remaining.append(FOREGROUND)
    return remaining


def deleted(
    kind: Kind[Any], json: Json, now: Instant, *, grace_s: int | None, finalizers: list[str]
) -> Json | None:
    """Return the object as a delete leaves it: None for removed, the same object for nothing to do."""
    meta = json["metadata"]
    grace = _grace(kind, json, grace_s)
    marked = meta.get("deletionTimestamp")
    if marked:
        current = cast("int", meta.get("deletionGracePeriodSeconds") or 0)
        # Somebody in more of a hurry may shorten the wait; nobody may lengthen it.
        grace = current if grace_s is None else min(current, grace)
        if grace == 0 and not finalizers:
            return None
        if grace == current and finalizers == (meta.get("finalizers") or []):
            return json
        asked = before(parse_rfc3339(marked), seconds(current))
        return _marked(json, format_rfc3339(after(asked, seconds(grace))), grace, finalizers)
    if grace == 0 and not finalizers:
        return None
    result = _marked(json, format_rfc3339(after(now, seconds(grace))), grace, finalizers)
    generation = meta.get("generation")
    if generation:
        # An object that is being deleted behaves differently, so its observers must look again.
        result["metadata"]["generation"] = generation + 1
    return result


def _grace(kind: Kind[Any], json: Json, asked_s: int | None) -> int:
    """Return the seconds a pod has to end; everything else goes at once.

    A pod that is bound to no node, or has ended, has nobody who would finish its deletion.
    """
    if kind.resource != "pods":
        return 0
    spec = json.get("spec") or {}
    phase = (json.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        return 0
    if asked_s is None:
        asked_s = spec.get("terminationGracePeriodSeconds")
        asked_s = _DEFAULT_POD_GRACE_S if asked_s is None else asked_s
    return 1 if asked_s < 0 else asked_s


def _marked(json: Json, timestamp: str, grace: int, finalizers: list[str]) -> Json:
    meta = {**json["metadata"], "deletionTimestamp": timestamp, "deletionGracePeriodSeconds": grace}
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    return {**json, "metadata": meta}
