"""What the scheduler writes of a pod that fits nowhere: its condition, the event, and the preemption that makes room for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from kubetide.acting import EventWriter, cut_note
from kubetide.embedded.controllers.pod_conditions import conditions_with
from kubetide.embedded.controllers.scheduling.nominations import Nominations
from kubetide.embedded.controllers.scheduling.pod_changes import NAME
from kubetide.embedded.controllers.scheduling.preemption import Preemption, find_preemption
from kubetide.embedded.controllers.scheduling.why_nowhere import (
    Refused,
    nobody_preempted,
    refusal_patch,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import Condition, Key, key_of
from kubetide.objects.pod import Pod, pod_condition, priority_of
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.scheduling import UNSCHEDULABLE, PodClass
from kubetide.scheduling.scoring import ScoredSnapshot
from kubetide.units.recent import Recent
from kubetide.units.time import format_rfc3339
from kubetide.watching import Informer

_PREEMPTED: Final = "PreemptionByScheduler"
_MOST_POLICIES: Final = 1 << 13


class _Outcome(NamedTuple):
    """What preemption comes to.

    Attributes:
        node: The node that the pod is nominated to from now on; empty for none.
        victims: The pods on it that are deleted for it.
        words: Why there are none.
    """

    node: str
    victims: tuple[Pod, ...] = ()
    words: str = ""


_NO_NODE = _Outcome("")


def _same_node(pod: Pod, words: str = "") -> _Outcome:
    return _Outcome(pod.status.nominated_node_name or "", words=words)


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
        self._never: Recent[str, bool] = Recent(_MOST_POLICIES)
        """By uid whether a pod has the policy that nobody is preempted for it."""
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
        """Write the condition and the event of a pod that was refused, and preempt others for it; of a gated one nothing."""
        if why.gated:
            return
        found = await self._preemption(pod, pod_class, why) if why.preempts else _NO_NODE
        if why.claims and not why.preempts:
            found = _same_node(pod)  # what fails in place of preemption leaves the nomination as it is
        written = await self._write(pod, why.reason, why.with_preemption(found.words), nominated=found.node)
        if written is None:
            return
        if found.node:
            self._nominations.note(key, written)
        if found.victims:
            await self._carry_out(found.node, found.victims, written)

    async def note_failed_binding(self, pod: Pod, why: str) -> None:
        """Write the condition and the event of a pod that had a node and could not be bound to it."""
        await self._write(pod, "SchedulerError", why, nominated="")

    async def nominate(self, pod: Pod, node: str) -> None:
        """Tell others which node a pod is to have, as its binding takes a while (KEP-5278)."""
        namespace, name = key_of(pod)
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": node}}
        await self._cluster.patch(PODS, name, patch, namespace=namespace, subresource="status")

    async def _write(self, pod: Pod, reason: str, message: str, *, nominated: str) -> Pod | None:
        """Write condition and event; return the pod as it is then, None if it is gone."""
        namespace, name = key_of(pod)
        try:
            if patch := refusal_patch(pod, reason, message, self._clock.now(), nominated=nominated):
                pod = await self._cluster.patch(PODS, name, patch, namespace=namespace, subresource="status")
        except NotFound:
            return None
        await self._events.record(PODS, pod.metadata, "Warning", "FailedScheduling", cut_note(message))
        return pod

    async def _preemption(self, pod: Pod, pod_class: PodClass, why: Refused) -> _Outcome:
        """Return what preemption comes to for a pod."""
        if await self._never_preempts(pod):
            return _same_node(pod, "not eligible due to preemptionPolicy=Never.")
        priority = priority_of(pod)
        if not self._number_by_priority or min(self._number_by_priority) >= priority:
            return _Outcome("", words=nobody_preempted(why))
        if self._is_making_room(pod, pod_class):
            return _same_node(pod, "not eligible due to a terminating pod on the nominated node.")
        budgets = () if self._budgets is None else self._budgets.objects.values()
        with self._nominations.ignoring_lower(priority):
            found = find_preemption(
                self._snapshot, pod_class, priority, pods=self._pods.objects, budgets=budgets
            )
        if isinstance(found, Preemption):
            return _Outcome(found.node, found.victims)
        # The snapshot may have changed since the pod was refused.
        now = why._replace(nodes=len(self._snapshot), resolvable=found.nodes)
        return _Outcome("", words=nobody_preempted(now, found.reasons))

    async def _never_preempts(self, pod: Pod) -> bool:
        """Return whether the pod waits rather than have others preempted, which only its PriorityClass can say."""
        if not pod.spec.priority_class_name:
            return False
        uid = pod.metadata.uid
        never = self._never.get(uid)
        if never is None:
            namespace, name = key_of(pod)
            try:
                raw = await self._cluster.get(PODS.untyped, name, namespace=namespace)
            except NotFound:
                return False
            never = raw["spec"].get("preemptionPolicy") == "Never"
            self._never.put(uid, never)
        return never

    def _is_making_room(self, pod: Pod, pod_class: PodClass) -> bool:
        """Return whether pods on the pod's nominated node are being deleted for it, and may be all that is in its way."""
        node = pod.status.nominated_node_name
        if not node or node not in self._snapshot:
            return False
        if not any(self._goes_for(pod, other) for other in self._snapshot.pods_on(node)):
            return False
        refusal = self._snapshot.first_refusal(pod_class, node)
        return refusal is None or refusal.code == UNSCHEDULABLE

    def _goes_for(self, pod: Pod, other: Pod) -> bool:
        """Return whether a pod of a lower priority is being deleted because of a preemption."""
        now = self._pods.objects.get(key_of(other))
        if now is None or not now.metadata.deletion_timestamp or priority_of(now) >= priority_of(pod):
            return False
        condition = pod_condition(now, "DisruptionTarget")
        return condition is not None and (condition.status, condition.reason) == ("True", _PREEMPTED)

    async def _carry_out(self, node: str, victims: Sequence[Pod], pod: Pod) -> None:
        staying = [victim for victim in victims if not victim.metadata.deletion_timestamp]
        if staying:
            await self._take_back_lower(node, priority_of(pod))
        for victim in staying:
            namespace, name = key_of(victim)
            mark = self._mark(victim)
            try:
                await self._cluster.patch(PODS, name, mark, namespace=namespace, subresource="status")
                await self._cluster.delete(PODS, name, namespace=namespace, uid=victim.metadata.uid)
            except NotFound:
                continue
            message = f"Preempted by pod {pod.metadata.uid} on node {node}"
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
