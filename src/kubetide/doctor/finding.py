"""A finding of a check."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from kubetide.objects.base import json_name
from kubetide.objects.kinds import Kind
from kubetide.objects.meta import ApiObject

Severity = Literal["critical", "warning", "info"]

SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info")
"""Worst first. ``critical``: something does not scale. ``warning``: it scales worse or costs more than it should."""

REPAIR_NODES: Final = (
    "kubectl get nodes, and kubectl describe node of one that is not ready: repair or delete these nodes"
)
"""The fix where nodes are not ready."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename=json_name, omit_defaults=True):
    """One problem of one object.

    Attributes:
        check: The name of the check.
        object: Kind, namespace and name: ``HorizontalPodAutoscaler shop/cart``.
        seen: What is wrong, with the numbers.
        why: Why it matters.
        fix: What to do.
        cost_per_hour: What it costs while it stays; None where that is not known.
    """

    check: str
    severity: Severity
    object: str
    seen: str
    why: str
    fix: str
    cost_per_hour: float | None = None


def title_of(found: ApiObject, kind: Kind[Any]) -> str:
    """Return the kind that the object names, else that of its list, with namespace and name."""
    return f"{found.kind or kind.kind} {found.metadata.namespace}/{found.metadata.name}"
