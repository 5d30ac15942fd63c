"""What the kubelets write about pods, and the addresses that they give them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from kubetide.embedded.kubelet.life import Life
from kubetide.embedded.kubelet.resizer import with_reported_resources
from kubetide.embedded.kubelet.statuses import stopped_status, termination
from kubetide.embedded.kubelet.times import Timing
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.units.time import Duration, Instant

_TERMINATED = 143
"""The exit code of a process that SIGTERM has ended."""


class Writer:
    """Writes to pods as the kubelet of their node."""

    def __init__(self, cluster: Cluster, lives: Mapping[Key, Life]) -> None:
        self._cluster = cluster
        self._lives = lives
        self._addresses = 0

    async def patch(self, pod: Pod, status: Json) -> None:
        """Change the status of a pod. Raises what the port raises."""
        meta = pod.metadata
        life = self._lives.get((meta.namespace, meta.name))
        if life is not None:
            status = with_reported_resources(life, pod, status)
        await self._cluster.patch(
            PODS, meta.name, {"status": status}, namespace=meta.namespace, subresource="status"
        )

    async def restart(self, life: Life, pod: Pod, container: str, now: Instant, timing: Timing) -> Duration:
        """End a container because its new resources want it; return how long until it is ready again."""
        meta = pod.metadata
        # Its conditions have just been written, which the cache may not know yet.
        pod = await self._cluster.get(PODS, meta.name, namespace=meta.namespace)
        again = life.restarts.get(container, 0) + 1
        lives = life.lives(now)
        last = termination(lives, reason="Error", exit_code=_TERMINATED, now=now)
        life.restarts = {**life.restarts, container: again}
        life.ended = {**life.ended, container: last}
        life.restarting = True
        life.epoch += 1
        status = stopped_status(
            pod,
            life.lives(now),
            container=container,
            state={"waiting": {"reason": "ContainerCreating"}},
            since=now,
        )
        await self.patch(pod, status)
        return Duration(timing.draw(pod, "start", 100 + again) + timing.draw(pod, "ready", 100 + again))

    async def delete(self, pod: Pod) -> None:
        """Remove a pod that has ended."""
        meta = pod.metadata
        with suppress(NotFound):
            await self._cluster.delete(
                PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_period_s=0
            )

    def address(self) -> str:
        """Return an address for a pod."""
        self._addresses += 1
        high, low = divmod(self._addresses, 250)
        return f"10.{64 + high // 250 % 128}.{high % 250}.{low + 1}"
