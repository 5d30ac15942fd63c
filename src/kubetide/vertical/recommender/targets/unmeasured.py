"""Containers without a sample of usage: an option beyond upstream (``wait_for_samples``).

Upstream recommends the pod's minimum for them, also while the metrics API is down: pods that are made then
get 25m CPU and 250Mi, whatever their workload asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubetide.objects.vpa import ContainerRecommendation, PodRecommendation
from kubetide.vertical.recommender.facts.members import Vpa
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.usage.cells import counted


def without_unmeasured(
    state: State, vpas: Sequence[Vpa], made: Sequence[PodRecommendation]
) -> list[PodRecommendation]:
    """Return the recommendations of VPAs; a container without a sample keeps the one of the status, or has none."""
    of_vpa = [dict(state.cells_of(vpa)) for vpa in vpas]
    rows = [
        cells[one.container_name]
        for cells, each in zip(of_vpa, made, strict=True)
        for one in each.container_recommendations or ()
    ]
    unmeasured = iter((counted(state.aggregates, rows)[2] == 0).tolist())
    return [_of_vpa(vpa, each, unmeasured) for vpa, each in zip(vpas, made, strict=True)]


def _of_vpa(vpa: Vpa, made: PodRecommendation, unmeasured: Iterator[bool]) -> PodRecommendation:
    found = []
    for one in made.container_recommendations or ():
        stays = stored_of(vpa, one.container_name) if next(unmeasured) else one
        if stays is not None:
            found.append(stays)
    return PodRecommendation(container_recommendations=tuple(found) or None)


def stored_of(vpa: Vpa, container: str) -> ContainerRecommendation | None:
    """Return the container's recommendation in the VPA's status, None without one."""
    recommendation = vpa.stored.read().recommendation
    there = (recommendation and recommendation.container_recommendations) or ()
    return next((one for one in there if one.container_name == container), None)
