"""Whether what an object scales is there, for checks of HPAs, VPAs and time tables."""

from __future__ import annotations

from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.workloads import PLURALS

_SHOWN = 5


def is_missing(snapshot: Snapshot, kind: str, namespace: str, name: str) -> bool:
    """Return whether a target is known not to be there; a kind that could not be read has no missing ones."""
    key, plural = (kind, namespace, name), PLURALS.get(kind)
    if key in snapshot.missing_scales:
        return True
    return plural is not None and snapshot.reads(plural) and key not in snapshot.workloads


def others_text(snapshot: Snapshot, kind: str, namespace: str) -> str:
    """Return which targets of the kind the namespace has instead: ``there are cart, web``."""
    near = sorted(
        name for one, home, name in snapshot.workloads if home == namespace and one.lower() == kind.lower()
    )
    return f"there are {', '.join(near[:_SHOWN])}" if near else f"there is no {kind} at all"
