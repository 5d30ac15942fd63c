"""The taint eviction controller: deletes pods from nodes whose NoExecute taints they do not tolerate, or no longer.

Source: kube-controller-manager v1.36, pkg/controller/tainteviction. Pods of the embedded API server do not carry the
tolerations of 300 s that the admission plugin DefaultTolerationSeconds adds; they are evicted as if they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kubetide.embedded.controllers.pod_conditions import conditions_with
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.owned_pods import follow
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import Condition, Key
from kubetide.objects.node import Node, Taint
from kubetide.objects.pod import Pod, Toleration
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict, NotFound
from kubetide.scheduling.filters.taint_toleration import tolerates
from kubetide.units.time import Instant, after, format_rfc3339, seconds
from kubetide.watching import Informer

_DEFAULT_SECONDS = 300
_BY_DEFAULT = tuple(
    Toleration(
        key=f"node.kubernetes.io/{name}",
        operator="Exists",
        effect="NoExecute",
        toleration_seconds=_DEFAULT_SECONDS,
    )
    for name in ("not-ready", "unreachable")
)

_Taints = tuple[Taint, ...]


class TaintEvictionController:
    """Evicts pods by NoExecute taints: at once, or when their toleration has run out; no budget is asked.

    It looks at pods only while some node has such a taint.
    """

    def __init__(self, cluster: Cluster, clock: Clock, *, pods: Informer[Pod], nodes: Informer[Node]) -> None:
        self._cluster, self._clock = cluster, clock
        self._pods, self._nodes = pods, nodes
        self._tainted: dict[str, _Taints] = {}
        self._due: dict[Key, tuple[str, Instant]] = {}
        """By pod that is to go, its uid and when."""
        self._queue: WorkQueue[Key] = WorkQueue(clock)

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        await self._nodes.synced()
        await self._pods.synced()
        follow(self._nodes, self._node_changed)
        self._pods.on_change(self._pod_changed)
        await self._queue.serve(self._evict)

    def _node_changed(self, key: Key, _old: Node | None, new: Node | None) -> None:
        name = key[1]
        taints = _evicting(new)
        before = self._tainted.get(name, ())
        if taints == before:
            return
        if taints:
            self._tainted[name] = taints
        else:
            del self._tainted[name]
            if new is None:
                return  # its pods are left to the pod garbage collector
        for pod_key, pod in self._pods.objects.items():
            if pod.spec.node_name == name:
                self._consider(pod_key, pod, taints)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            self._forget(key)
        elif taints := self._tainted.get(new.spec.node_name):
            bound = old is None or old.metadata.uid != new.metadata.uid or not old.spec.node_name
            if bound or old is None or old.spec.tolerations != new.spec.tolerations:
                self._consider(key, new, taints)

    def _consider(self, key: Key, pod: Pod, taints: _Taints) -> None:
        """Plan the eviction of a pod, or drop what was planned. As long as all taints are tolerated a plan stands."""
        uid, now = pod.metadata.uid, self._clock.now()
        used = _used_tolerations(pod.spec.tolerations or (), taints)
        limits = [one.toleration_seconds for one in used or () if one.toleration_seconds is not None]
        if used is not None and not limits:
            self._forget(key)
            return
        if used is not None and key in self._due and self._due[key][0] == uid:
            return
        self._forget(key)
        due = now if used is None else after(now, seconds(max(min(limits), 0)))
        self._due[key] = uid, due
        self._queue.add_at(key, due)

    def _forget(self, key: Key) -> None:
        if self._due.pop(key, None) is not None:
            self._queue.forget(key)

    async def _evict(self, key: Key) -> None:
        known, pod = self._due.get(key), self._pods.objects.get(key)
        if known is None or pod is None or pod.metadata.uid != known[0] or self._clock.now() < known[1]:
            return
        if pod.metadata.deletion_timestamp is None:
            # It may have gone by itself; another of its name is considered by itself.
            with suppress(NotFound, Conflict):
                await self._delete(key, pod)
        self._due.pop(key, None)

    async def _delete(self, key: Key, pod: Pod) -> None:
        condition = Condition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            last_transition_time=format_rfc3339(self._clock.now()),
        )
        mark = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"conditions": conditions_with(pod, condition)},
        }
        namespace, name = key
        await self._cluster.patch(PODS, name, mark, namespace=namespace, subresource="status")
        await self._cluster.delete(PODS, name, namespace=namespace, uid=pod.metadata.uid)


def _evicting(node: Node | None) -> _Taints:
    taints = () if node is None else node.spec.taints or ()
    return tuple(taint for taint in taints if taint.effect == "NoExecute")


def _used_tolerations(tolerations: Sequence[Toleration], taints: _Taints) -> list[Toleration] | None:
    """Return the first toleration of each taint; None where one is not tolerated."""
    used = []
    for taint in taints:
        found = next((one for one in (*tolerations, *_BY_DEFAULT) if tolerates((one,), taint)), None)
        if found is None:
            return None
        used.append(found)
    return used
