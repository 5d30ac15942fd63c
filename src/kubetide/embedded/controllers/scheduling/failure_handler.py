"""What the scheduler writes of a pod that fits nowhere: its condition, the event, and the preemption that makes room for it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kubetide.acting import EventWriter, cut_note
from kubetide.embedded.controllers.pod_conditions import conditions_with
from kubetide.embedded.controllers.scheduling.nominations import Nominations
from kubetide.embedded.controllers.scheduling.pod_changes import NAME
from kubetide.embedded.controllers.scheduling.preemption import Preemption, find_preemption
from kubetide.embedded.controllers.scheduling.why_nowhere import Refused, refusal_patch
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import Condition, Key, key_of
from kubetide.objects.pod import Pod, pod_condition, priority_of
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.scheduling import PodClass
from kubetide.scheduling.scoring import ScoredSnapshot
from kubetide.units.time import format_rfc3339
from kubetide.watching import Informer

_PREEMPTED: Final = "PreemptionByScheduler"


class FailureHandler:
    """Writes why pods fit nowhere, and preempts others where that helps."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        events: EventWriter,
        snapshot: ScoredSnapshot,
        nominations: Nominations,
        pods: Informer[Pod],
        budgets: Informer[PodDisruptionBudget] | None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._events = events
        self._snapshot = snapshot
        self._nominations = nominations
        self._pods = pods
        self._budgets = budgets
        self._priorities: dict[Key, int] = {}
        """Of the pods on nodes; with their number by priority no victims are looked for where there can be none."""
        self._number_by_priority: Counter[int] = Counter()

    def note(self, key: Key, pod: Pod) -> None:
        """Know of a pod on a node."""
        self.forget(key)
        priority = self._priorities[key] = priority_of(pod)
        self._number_by_priority[priority] += 1

    def forget(self, key: Key) -> None:
        """Forget a pod that is gone."""
        priority = self._priorities.pop(key, None)
        if priority is not None:
            self._number_by_priority[priority] -= 1
            if not self._number_by_priority[priority]:
                del self._number_by_priority[priority]

    async def handle(self, key: Key, pod: Pod, pod_class: PodClass, why: Refused) -> None:
        """Write the condition and the event of a pod that was refused, and preempt others for it."""
        found = await self._preemption(pod, pod_class) if why.reason == "Unschedulable" else None
        node = "" if found is None else found.node
        try:
            if patch := refusal_patch(pod, why, self._clock.now(), nominated=node):
                pod = await self._cluster.patch(PODS, key[1], patch, namespace=key[0], subresource="status")
        except NotFound:
            return
        await self._events.record(PODS, pod.metadata, "Warning", "FailedScheduling", cut_note(why.message))
        if found is not None:
            self._nominations.note(key, pod)
            await self._carry_out(found, pod)

    async def _preemption(self, pod: Pod, pod_class: PodClass) -> Preemption | None:
        """Return the preemption for a pod, or the one that is on its way; None where there is none."""
        priority = priority_of(pod)
        if not self._number_by_priority or min(self._number_by_priority) >= priority:
            return None
        nominated = pod.status.nominated_node_name
        there = self._snapshot.pods_on(nominated) if nominated in self._snapshot else ()
        if any(self._goes_for(pod, other) for other in there):
            return Preemption(nominated)
        try:
            raw = await self._cluster.get(PODS.untyped, pod.metadata.name, namespace=pod.metadata.namespace)
        except NotFound:
            return None
        if raw["spec"].get("preemptionPolicy") == "Never":
            return None
        budgets = () if self._budgets is None else self._budgets.objects.values()
        with self._nominations.ignoring_lower(priority):
            return find_preemption(
                self._snapshot, pod_class, priority, pods=self._pods.objects, budgets=budgets
            )

    def _goes_for(self, pod: Pod, other: Pod) -> bool:
        """Return whether a pod of a lower priority is being deleted because of a preemption."""
        now = self._pods.objects.get(key_of(other))
        if now is None or not now.metadata.deletion_timestamp or priority_of(now) >= priority_of(pod):
            return False
        condition = pod_condition(now, "DisruptionTarget")
        return condition is not None and (condition.status, condition.reason) == ("True", _PREEMPTED)

    async def _carry_out(self, found: Preemption, pod: Pod) -> None:
        if found.victims:
            await self._take_back_lower(found.node, priority_of(pod))
        for victim in found.victims:
            if victim.metadata.deletion_timestamp:
                continue
            namespace, name = key_of(victim)
            mark = self._mark(victim)
            try:
                await self._cluster.patch(PODS, name, mark, namespace=namespace, subresource="status")
                await self._cluster.delete(PODS, name, namespace=namespace, uid=victim.metadata.uid)
            except NotFound:
                continue
            message = f"Preempted by pod {pod.metadata.uid} on node {found.node}"
            await self._events.record(PODS, victim.metadata, "Normal", "Preempted", message)

    async def _take_back_lower(self, node: str, priority: int) -> None:
        """End the nominations of pods of a lower priority to the node, so that they look for another."""
        for key in self._nominations.to(node):
            other = self._pods.objects.get(key)
            if other is None or priority_of(other) >= priority:
                continue
            patch = {"status": {"nominatedNodeName": None}}
            try:
                await self._cluster.patch(PODS, key[1], patch, namespace=key[0], subresource="status")
            except NotFound:
                continue

    def _mark(self, victim: Pod) -> Json:
        """Return the patch that says why the pod goes."""
        condition = Condition(
            type="DisruptionTarget",
            status="True",
            reason=_PREEMPTED,
            message=f"{NAME}: preempting to accommodate a higher priority pod",
            last_transition_time=format_rfc3339(self._clock.now()),
        )
        conditions = conditions_with(victim, condition)
        return {"metadata": {"uid": victim.metadata.uid}, "status": {"conditions": conditions}}
