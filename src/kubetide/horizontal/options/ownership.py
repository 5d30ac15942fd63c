"""Only pods that the target owns (annotation ``count-only-owned``).

Upstream counts every pod that matches the selector, whoever made it: a Job's pod with the same labels, or a
Deployment's that is not meant. Here the pod's controller must be one of the target's: itself or one of its ReplicaSets.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kubetide.horizontal.facts.views import PodView


def owned_rows(rows: Sequence[int], pods: Sequence[PodView], owners: Collection[str]) -> list[int]:
    """Return the rows of the pods whose controller is among the owners (``KIND/NAME``), in order."""
    return [row for row, pod in zip(rows, pods, strict=True) if pod.owner in owners]
