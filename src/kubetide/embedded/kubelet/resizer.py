"""Carries out what is asked of pods in place: grants, postpones, and says so in their statuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from kubetide.embedded.agenda import Agenda
from kubetide.embedded.kubelet.life import Life, Step
from kubetide.embedded.kubelet.nodes import NodeKeeper
from kubetide.embedded.kubelet.resizing import (
    Refusal,
    conditions,
    granted_before,
    refusal,
    restarted,
    same_resources,
    with_resources,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod, PodSpec, is_finished
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.scheduling.pods.resources import pod_requests
from kubetide.units.time import after, seconds
from kubetide.watching import Informer

_ACTUATION = seconds(1)
"""How long a container runtime takes to change what a container has: about a turn of the kubelet."""


class Resizer:
    """What was granted to each pod, and which pods wait for free capacity."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        agenda: Agenda[Step],
        *,
        pods: Informer[Pod],
        keeper: NodeKeeper,
        lives: Mapping[Key, Life],
        on_node: Mapping[str, Mapping[Key, None]],
        always_reports: bool,
    ) -> None:
        self._cluster = cluster
        # kube-apiserver resizes only pods whose statuses have resources; where nobody reads them they say nothing new.
        self._always_reports = always_reports
        self._clock = clock
        self._agenda = agenda
        self._pods = pods
        self._keeper = keeper
        self._lives = lives
        self._on_node = on_node
        self._deferred: dict[str, dict[Key, None]] = {}

    def accept(self, key: Key, life: Life, pod: Pod) -> None:
        """Grant a pod that is new here what it asks for, and one that runs already what it has."""
        life.generation = pod.metadata.generation
        life.allocated = pod.spec
        if self._always_reports:
            life.actual = pod.spec
        if pod.status.phase == "Running" and _reports_resources(pod):
            life.allocated, life.actual = granted_before(pod)
            self.look(key, life, pod)

    def changed(self, key: Key, life: Life, pod: Pod) -> None:
        """Take in a change of a pod."""
        if pod.metadata.generation != life.generation:
            life.generation = pod.metadata.generation
            self.look(key, life, pod)

    def look(self, key: Key, life: Life, pod: Pod) -> None:
        """Put what there is to do for a pod."""
        if not self._keeper.has(life.node):
            return
        waits = key in self._deferred.get(life.node, ())
        if waits or not same_resources(pod.spec, life.allocated) or _under_way(life):
            self._put(key, life)

    def retry(self, node: str) -> None:
        """Try the pods again that wait for free capacity on a node."""
        for key in self._deferred.get(node, ()):
            self._put(key, self._lives[key])

    def forget(self, key: Key, life: Life) -> None:
        """Forget a pod; its capacity is free for the others of its node."""
        waiting = self._deferred.get(life.node)
        if waiting is not None:
            waiting.pop(key, None)
            if not waiting:
                del self._deferred[life.node]
        self.retry(life.node)

    async def resize(self, key: Key, life: Life, pod: Pod) -> None:
        """Grant what a pod asks for where it fits. Raises what the port raises."""
        if life.stopping or is_finished(pod):
            return
        refused = None
        if life.started is not None and life.actual is None:
            life.actual = life.allocated
        if not same_resources(pod.spec, life.allocated):
            refused = self._refusal(key, life, pod)
            if refused is None:
                life.allocated = pod.spec
        if refused is not None and refused.reason == "Deferred":
            self._deferred.setdefault(life.node, {})[key] = None
        else:
            self._deferred.get(life.node, {}).pop(key, None)
        await self._write(life, pod, refused)
        if _under_way(life) and not life.resizing:
            life.resizing = True
            step = Step("resized", key, life.uid)
            self._agenda.put(after(self._clock.now(), _ACTUATION), step)

    async def finish(self, key: Key, life: Life, pod: Pod) -> list[str]:
        """Have granted resources take effect; return the containers that must be started again for them."""
        life.resizing = False
        if life.stopping or is_finished(pod) or life.actual is None:
            return []
        before, life.actual = life.actual, life.allocated
        try:
            await self._write(life, pod, None)
        except Exception:
            life.actual = before
            raise
        self.retry(life.node)
        self.look(key, life, pod)
        return restarted(before, life.actual)

    def _put(self, key: Key, life: Life) -> None:
        self._agenda.put(self._clock.now(), Step("resize", key, life.uid))

    def _refusal(self, key: Key, life: Life, pod: Pod) -> Refusal | None:
        used: Counter[str] = Counter()
        for other in self._on_node.get(life.node, ()):
            neighbour = self._pods.objects.get(other)
            if other != key and neighbour is not None:
                used.update(_requests(neighbour, self._lives[other].allocated))
        held = _requests(pod, life.allocated)
        return refusal(pod_requests(pod), held, used, self._keeper.allocatable(life.node))

    async def _write(self, life: Life, pod: Pod, refused: Refusal | None) -> None:
        meta = pod.metadata
        raw = (await self._cluster.get(PODS.untyped, meta.name, namespace=meta.namespace)).get("status") or {}
        generation = meta.generation
        status: Json = {
            "observedGeneration": generation,
            "conditions": conditions(
                raw.get("conditions") or [],
                refused,
                in_progress=_under_way(life),
                generation=generation,
                now=self._clock.now(),
            ),
        }
        await self._cluster.patch(
            PODS,
            meta.name,
            {"status": with_reported_resources(life, pod, {**_statuses(raw), **status})},
            namespace=meta.namespace,
            subresource="status",
        )


def with_reported_resources(life: Life, pod: Pod, status: Json) -> Json:
    """Return a status with resources, where the pod has ever been resized."""
    if life.actual is None:
        return status
    status = {"observedGeneration": pod.metadata.generation, **status}
    for part in ("containerStatuses", "initContainerStatuses"):
        if part in status:
            status[part] = with_resources(status[part], life.allocated, life.actual)
    return status


def _statuses(raw: Json) -> Json:
    return {part: raw[part] for part in ("containerStatuses", "initContainerStatuses") if raw.get(part)}


def _under_way(life: Life) -> bool:
    return life.actual is not None and not same_resources(life.actual, life.allocated)


def _requests(pod: Pod, spec: PodSpec) -> dict[str, int]:
    return pod_requests(msgspec.structs.replace(pod, spec=spec))


def _reports_resources(pod: Pod) -> bool:
    """Return whether any status has resources, whatever they are."""
    status = pod.status
    containers = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return status.resources is not None or any(one.resources is not None for one in containers)
