"""Pod deletion costs at a scale-in, idlest pods first (annotation ``idlest-first``).

The ReplicaSet controller deletes ready pods with a lower ``pod-deletion-cost`` first (Kubernetes v1.22 on). Only the
pods that are to go get one, below the 0 that all others have: as few writes as pods that leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"


def costs_of_idlest(
    pods: Sequence[str], usage: Mapping[str, int], leaving: int
) -> tuple[tuple[str, int], ...]:
    """Return names and costs of the pods with the least usage, the idlest with the lowest cost.

    Args:
        pods: All that count.
        usage: In thousandths, by name; a pod without a sample is not marked.
        leaving: How many pods go.
    """
    known = sorted((usage[pod], pod) for pod in pods if pod in usage)
    chosen = known[: max(leaving, 0)]
    return tuple((pod, rank - len(chosen)) for rank, (_, pod) in enumerate(chosen))
