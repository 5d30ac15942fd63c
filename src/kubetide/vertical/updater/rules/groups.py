"""Pods by the controller that replaces them, and how many of each group may be changed at once.

Source: vertical-pod-autoscaler 1.8.1, pkg/updater/restriction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubetide.objects.meta import Key, key_of
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import IN_PLACE, IN_PLACE_OR_RECREATE, VerticalPodAutoscaler
from kubetide.units.lists import counted
from kubetide.vertical.resources.boost import is_boosted
from kubetide.vertical.resources.policies import update_mode
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.workloads import Workloads, owner_of

Say = Callable[[str, Key | None, str], None]
"""Takes a reason's code, the pod and a detail."""

_REPLICATED = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})


@dataclass(slots=True)
class Group:
    """The live pods of one controller.

    Attributes:
        configured: Replicas that it should have; ``tolerance`` of them may be down.
        running: Pods that are not Pending; ``evicted`` and ``resizing`` of them in this loop.
        too_few: Whether there are fewer pods than ``min-replicas``, and it is here only to be resized without a
            budget: none that runs is evicted then.
    """

    configured: int
    tolerance: int
    running: int
    too_few: bool = False
    evicted: int = 0
    resizing: int = 0

    def has_budget(self) -> bool:
        """Return whether one more pod may be evicted or resized.

        With a tolerance of no whole pod one may still go while all replicas run.
        """
        changed = self.evicted + self.resizing
        if self.running - changed > self.configured - self.tolerance:
            return True
        return self.tolerance == 0 and changed == 0 and self.running == self.configured


def groups_of(
    pods: Sequence[Pod], vpa: VerticalPodAutoscaler, workloads: Workloads, settings: Settings, say: Say
) -> dict[str, Group]:
    """Return the group of each pod, by UID; pods that may not be changed at all have none."""
    by_controller: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        owner = owner_of(pod.metadata.owner_references)
        if owner is None:
            say("NoController", key_of(pod), "")
        else:
            by_controller.setdefault((owner.kind, pod.metadata.namespace, owner.name), []).append(pod)
    policy = vpa.spec.update_policy
    least = policy.min_replicas if policy is not None else None
    least = settings.min_replicas if least is None else least
    skips = settings.in_place_skip_disruption_budget and update_mode(vpa.spec) in {
        IN_PLACE,
        IN_PLACE_OR_RECREATE,
    }
    found: dict[str, Group] = {}
    for controller, members in by_controller.items():
        name = f"{controller[0]} {controller[1]}/{controller[2]}"
        too_few = len(members) < least
        if too_few and not skips and not any(map(is_boosted, members)):
            say("TooFewReplicas", None, f"{name} has {counted(len(members), 'live pod')}, required {least}")
            continue
        configured = _replicas(controller, len(members), workloads, settings)
        if isinstance(configured, str):
            say("ReplicasUnknown", None, configured)
            continue
        pending = sum(pod.status.phase == "Pending" for pod in members)
        group = Group(
            configured=configured,
            tolerance=int(configured * settings.eviction_tolerance),
            running=len(members) - pending,
            too_few=too_few and skips,
        )
        found |= {uid_of(pod): group for pod in members}
    return found


def _replicas(
    controller: tuple[str, str, str], live: int, workloads: Workloads, settings: Settings
) -> int | str:
    """Return the replicas that a controller should have, or why that is unknown."""
    kind, namespace, name = controller
    if kind == "Job":
        return live
    title = f"{kind} {namespace}/{name}"
    view = workloads.get(controller)
    if kind == "DaemonSet":
        if view is None:
            return f"{title} does not exist"
        number = view.ready if settings.is_1_8_0 else view.desired
        return number or f"daemon set {namespace}/{name} has no desired scheduled pods"
    if kind not in _REPLICATED:
        return 0  # as upstream: nothing is known of it, hence nothing is required
    if view is None:
        return f"{title} does not exist"
    return view.replicas or f"{title} has no replicas in its spec"


def uid_of(pod: Pod) -> str:
    """Return what a pod is remembered by: its UID, or its name where it has none."""
    return pod.metadata.uid or "/".join(key_of(pod))
