"""Pod deletion costs at a scale-in, idlest pods first (annotation ``idlest-first``).

The ReplicaSet controller deletes ready pods with a lower ``pod-deletion-cost`` first (Kubernetes v1.22 on). Only the
pods that are to go get one, below the 0 that all others have: as few writes as pods that leave. A pod that is not ready
goes before all of them, whatever its cost, and one that is being deleted or has ended is none of the replicas any more.
A cost that somebody else gave a pod stays; with one below 0 the pod goes first, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.horizontal.facts.views import PodView
from kubetide.horizontal.options.annotations import GIVEN_COST
from kubetide.objects.base import Json
from kubetide.objects.pod import DELETION_COST


def marks(cost: int | None) -> Json:
    """Return the annotations of a pod that gets a deletion cost here; None takes the cost off."""
    text = None if cost is None else str(cost)
    return {DELETION_COST: text, GIVEN_COST: text}


def is_active(pod: PodView) -> bool:
    """Return whether a pod runs or is yet to run, and stays."""
    return not pod.deleting and pod.phase not in {"Failed", "Succeeded"}


def choosable(pods: Sequence[PodView], leaving: int) -> tuple[list[PodView], int]:
    """Return the pods that may get a cost at a scale-in, and how many of them go.

    Args:
        pods: All that count.
        leaving: How many replicas go.
    """
    replicas = [pod for pod in pods if is_active(pod)]
    ready = [pod for pod in replicas if pod.ready == "True"]
    cheap = sum(pod.own_cost is not None and pod.own_cost < 0 for pod in ready)
    before = len(replicas) - len(ready) + cheap
    return [pod for pod in ready if pod.own_cost is None], max(leaving - before, 0)


def costs_of_idlest(
    pods: Sequence[PodView], usage: Mapping[str, int], leaving: int
) -> tuple[tuple[str, int], ...]:
    """Return names and costs of the pods with the least usage, the idlest with the lowest cost.

    Args:
        pods: All that count.
        usage: In thousandths, by name; a pod without a sample is not marked.
        leaving: How many replicas go.
    """
    ready, number = choosable(pods, leaving)
    chosen = sorted((usage[pod.name], pod.name) for pod in ready if pod.name in usage)[:number]
    return tuple((pod, rank - len(chosen)) for rank, (_, pod) in enumerate(chosen))
