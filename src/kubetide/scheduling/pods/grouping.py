"""Equivalence groups: pods of one controller that a scale-up may treat as copies of one pod."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.classes import classify
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.similar import MAX_PER_CONTROLLER, controller_uid, similarity_key


class PodGroup(msgspec.Struct, frozen=True):
    """Equal pods; ``pod_class`` is that of the first, which represents all."""

    pods: tuple[Pod, ...]
    pod_class: PodClass


def equivalence_groups(pods: Iterable[Pod]) -> list[PodGroup]:
    """Return pods grouped by controller and similarity, in the order of each group's first pod.

    Pods without a controller and DaemonSet pods are groups of their own, and so is each further
    distinct pod of a controller that has ten groups already.

    Source: cluster-autoscaler core (Jul 2026), where the order of groups is random.
    """
    members: list[list[Pod]] = []
    known: dict[str, dict[bytes, list[Pod]]] = {}
    for pod in pods:
        uid = controller_uid(pod)
        alone = [pod]
        if uid:
            of_controller = known.setdefault(uid, {})
            key = similarity_key(pod)
            group = of_controller.get(key)
            if group is not None:
                group.append(pod)
                continue
            if len(of_controller) < MAX_PER_CONTROLLER:
                of_controller[key] = alone
        members.append(alone)
    return [PodGroup(tuple(group), classify(group[0])) for group in members]
