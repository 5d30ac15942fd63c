"""The kubelets of all animated nodes as one client of the Cluster port.

A pod's life is a handful of steps, each an entry of one agenda: the containers run, the pod is ready, a container is
started again, the containers have ended. Each step is one status patch (the last one a deletion). Steps are written
one after another, in the order in which they are due.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from kubetide.embedded.agenda import Agenda
from kubetide.embedded.kubelet.crashes import Crashes
from kubetide.embedded.kubelet.disruption_modes import is_ready
from kubetide.embedded.kubelet.endings import Ending, ending_of
from kubetide.embedded.kubelet.life import Do, Life, Step
from kubetide.embedded.kubelet.nodes import NodeKeeper
from kubetide.embedded.kubelet.resizer import Resizer
from kubetide.embedded.kubelet.statuses import (
    ends_told,
    finished_status,
    ready_status,
    running_status,
    unready_condition_status,
)
from kubetide.embedded.kubelet.times import DEFAULT_TIMES, PodTimes, Settled, Timing
from kubetide.embedded.kubelet.writer import Writer
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished, pod_condition
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, as_remote
from kubetide.ports.errors import ApiError, Conflict, NotFound
from kubetide.units.time import ZERO, Duration, Instant, after, minutes, parse_rfc3339, seconds
from kubetide.watching import Informer

_GARBAGE_AFTER = seconds(40)
"""How long a node must be gone before its pods are deleted (pod garbage collector, v1.36)."""
_RETRY = seconds(1)
HEARTBEAT = minutes(5)


class KubeletPool:
    """Lets the pods bound to animated nodes live; deletes those whose node is gone."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        seed: int,
        times: PodTimes = DEFAULT_TIMES,
        times_of: Callable[[Pod], PodTimes | None] | None = None,
        animates: Callable[[Node], bool] = lambda _: True,
        settled: Settled | None = None,
        heartbeat: Duration = HEARTBEAT,
        lease_renewal: Duration = ZERO,
        reports_resources: bool = False,
    ) -> None:
        """Follow the informers from now on; writes nothing before ``run``.

        Args:
            cluster: Where statuses are written.
            clock: The time.
            pods: All pods.
            nodes: All nodes.
            seed: What all times are drawn from, by (seed, uid of the pod, step).
            times: How long the steps of a pod take.
            times_of: Other times for some pods; None from it means ``times``.
            animates: Which nodes' kubelets these are.
            settled: Pods that count as ready from the beginning.
            heartbeat: How often node statuses are confirmed; 0 is never.
            lease_renewal: How often node leases are renewed; 0 is never, as nothing here reads them.
            reports_resources: Whether statuses say the resources of containers from the start, as those of real
                kubelets do; on a cluster behind a connection they always do.
        """
        self._cluster = cluster
        self._clock = clock
        self._pods = pods
        self._timing = Timing(seed, times, times_of)
        self._settled = settled
        self._heartbeat = heartbeat
        self._lease_renewal = lease_renewal
        self._agenda: Agenda[Step] = Agenda(clock)
        self._keeper = NodeKeeper(cluster, clock, nodes, animates)
        self._lives: dict[Key, Life] = {}
        self._on_node: dict[str, dict[Key, None]] = {}
        self._writer = Writer(cluster, self._lives)
        self._crashes = Crashes(self._agenda, self._writer, self._timing)
        self._resizer = Resizer(
            cluster,
            clock,
            self._agenda,
            pods=pods,
            keeper=self._keeper,
            lives=self._lives,
            on_node=self._on_node,
            always_reports=reports_resources or as_remote(cluster) is not None,
        )
        for node_key, node in nodes.objects.items():
            self._node_changed(node_key, None, node)
        for pod_key, pod in pods.objects.items():
            self._pod_changed(pod_key, None, pod)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Let pods live until cancelled."""
        if self._heartbeat:
            self._agenda.put(after(self._clock.now(), self._heartbeat), Step("heartbeat"))
        if self._lease_renewal:
            self._agenda.put(self._clock.now(), Step("renew"))
        await self._agenda.run(self._do)

    # ── faults ──────────────────────────────────────────────────────────────────────────────────

    def crash(self, key: Key, *, container: str = "", reason: str = "Error", exit_code: int = 1) -> None:
        """End a container (empty: the first) of a running pod; it is started again, later each time.

        Does nothing to a pod that does not run here or is being started again. The first start follows at once, the
        next ones after 10 s, 20 s and so on up to 5 min.
        """
        life, pod = self._lives.get(key), self._pods.objects.get(key)
        if life is None or pod is None or life.started is None or life.stopping or life.restarting:
            return
        names = [c.name for c in pod.spec.containers or ()]
        if not names:
            return
        life.restarting = True
        life.epoch += 1
        life.crash = container or names[0], reason, exit_code
        self._next(life, key, "crash", self._clock.now())

    def oom_kill(self, key: Key, container: str = "") -> None:
        """End a container (empty: the first) as the kernel does when memory passes the limit."""
        self.crash(key, container=container, reason="OOMKilled", exit_code=137)

    def silence_node(self, name: str) -> None:
        """Let a node's kubelet fall silent, where somebody else writes that the node is lost."""
        self._keeper.silence(name)

    async def fail_node(self, name: str, health: Literal["False", "Unknown"] = "Unknown") -> None:
        """Make a node unhealthy: its Ready condition and taints, and Ready=False on its pods.

        ``False`` is a kubelet that says so itself, ``Unknown`` one that is silent. Until ``recover_node`` no step of its
        pods is done, and those that the control plane evicts stay on their way out. Raises NotFound.
        """
        await self._keeper.set_health(name, health)
        for key in list(self._on_node.get(name, ())):
            self._agenda.put(self._clock.now(), Step("lose", key, self._lives[key].uid))

    async def recover_node(self, name: str) -> None:
        """Make a node healthy again; its pods go on where they were. Raises NotFound."""
        await self._keeper.set_health(name, "True")
        self.resume_node(name)

    def resume_node(self, name: str) -> None:
        """Let a kubelet that fell silent speak again; its pods go on where they were."""
        self._keeper.forget(name)
        now = self._clock.now()
        for key in list(self._on_node.get(name, ())):
            life = self._lives[key]
            if life.parked is not None:
                parked, life.parked = life.parked, None
                self._agenda.put(now, parked)
            self._agenda.put(now, Step("regain", key, life.uid))
            pod = self._pods.objects.get(key)
            if pod is not None:
                self._resizer.look(key, life, pod)

    # ── what the cluster says ───────────────────────────────────────────────────────────────────

    def _node_changed(self, key: Key, old: Node | None, new: Node | None) -> None:
        name = key[1]
        if self._keeper.has_lost_nodes() and is_ready(old) != is_ready(new):
            self._agenda.put(self._clock.now(), Step("settle evictions"))
        if new is None:
            self._keeper.forget(name)
            self._timing.forget(name)
            for pod_key in list(self._on_node.get(name, ())):
                life = self._lives[pod_key]
                life.epoch += 1
                life.parked = None
                self._collect_later(pod_key, life)
        elif old is None:
            # Its pods may have come first.
            for pod_key in list(self._on_node.get(name, ())):
                pod = self._pods.objects.get(pod_key)
                if pod is not None:
                    self._drop(pod_key)
                    self._accept(pod_key, pod)
        elif old.status.allocatable != new.status.allocatable:
            self._resizer.retry(name)

    def _pod_changed(self, key: Key, _old: Pod | None, new: Pod | None) -> None:
        life = self._lives.get(key)
        ended = new is None or (is_finished(new) and new.metadata.deletion_timestamp is None)
        if life is not None and (new is None or ended or new.metadata.uid != life.uid):
            self._drop(key)
            life = None
        if new is None or ended or not new.spec.node_name:
            return
        if life is None:
            self._accept(key, new)
        elif new.metadata.deletion_timestamp is not None and not life.stopping:
            self._stop(key, new, life)
        else:
            self._resizer.changed(key, life, new)

    def _accept(self, key: Key, pod: Pod) -> None:
        """Take on a pod that is new to its node, or that was running before this pool was there."""
        name, now = pod.spec.node_name, self._clock.now()
        life = Life(uid=pod.metadata.uid, node=name, accepted=now)
        node_is_here = self._keeper.has(name)
        if node_is_here and not self._keeper.animates(name):
            return
        self._lives[key] = life
        self._on_node.setdefault(name, {})[key] = None
        if not node_is_here:
            self._collect_later(key, life)
            return
        self._resizer.accept(key, life, pod)
        if pod.status.phase == "Running":
            self._resume(key, pod, life)
        if pod.metadata.deletion_timestamp is not None:
            self._stop(key, pod, life)
        elif life.started is None:
            if self._settled is not None and now <= self._settled.until:
                self._next(life, key, "settle", now)
            else:
                self._next(life, key, "run", after(now, self._timing.until_running(pod, now)))

    def _resume(self, key: Key, pod: Pod, life: Life) -> None:
        """Take over a pod that runs already."""
        with suppress(ValueError):
            life.accepted = parse_rfc3339(pod.status.start_time or "")
        life.started = life.accepted
        life.restarts = {status.name: status.restart_count for status in pod.status.container_statuses or ()}
        life.ended = ends_told(pod)
        if not _is(pod, "Ready"):
            self._next(life, key, "ready", after(self._clock.now(), self._timing.draw(pod, "ready")))
        self._plan_end(key, life, pod)

    def _stop(self, key: Key, pod: Pod, life: Life) -> None:
        life.stopping = True
        life.epoch += 1
        life.parked = None
        now = self._clock.now()
        if not self._keeper.has(life.node):
            self._collect_later(key, life)
            return
        grace = seconds(pod.metadata.deletion_grace_period_seconds or 0)
        wait = min(grace, self._timing.draw(pod, "stop")) if life.started is not None else ZERO
        self._next(life, key, "end", after(now, Duration(wait)))

    def _drop(self, key: Key) -> None:
        life = self._lives.pop(key)
        on_node = self._on_node[life.node]
        del on_node[key]
        if not on_node:
            del self._on_node[life.node]
        self._resizer.forget(key, life)

    # ── the agenda ─────────────────────────────────────────────────────────────────────────────

    def _next(self, life: Life, key: Key, do: Do, due: Instant) -> None:
        self._agenda.put(due, Step(do, key, life.uid, life.epoch))

    def _collect_later(self, key: Key, life: Life) -> None:
        if life.orphaned is None:
            life.orphaned = self._clock.now()
        self._next(life, key, "collect", after(life.orphaned, _GARBAGE_AFTER))

    # ── what becomes due ────────────────────────────────────────────────────────────────────────

    async def _do(self, step: Step) -> None:
        if step.do == "heartbeat":
            await self._keeper.confirm_statuses()
            self._agenda.put(after(self._clock.now(), self._heartbeat), step)
            return
        if step.do == "settle evictions":
            if not await self._keeper.settle_evictions():
                self._agenda.put(after(self._clock.now(), _RETRY), step)
            return
        if step.do == "renew":
            await self._keeper.renew_leases()
            self._agenda.put(after(self._clock.now(), self._lease_renewal), step)
            return
        life, pod = self._lives.get(step.key), self._pods.objects.get(step.key)
        if life is None or pod is None or life.uid != step.uid:
            return
        if step.do in {"resize", "resized"}:
            if self._keeper.is_failing(life.node):
                life.resizing = False  # looked at again when the node is well
                return
        elif step.do not in {"lose", "regain"}:
            if step.epoch != life.epoch:
                return
            if step.do != "collect" and self._keeper.is_failing(life.node):
                life.parked = step
                return
        try:
            await self._write(step, life, pod)
        except (NotFound, Conflict):
            # The pod is gone or is another one by now; the informer will say so.
            return
        except ApiError:
            self._agenda.put(after(self._clock.now(), _RETRY), step)

    async def _write(self, step: Step, life: Life, pod: Pod) -> None:
        now = self._clock.now()
        match step.do:
            case "run":
                wait = self._timing.draw(pod, "ready")
                status = running_status(
                    pod,
                    pod_ip=self._writer.address(),
                    host_ip=self._keeper.address(life.node),
                    accepted=life.accepted,
                    started=now,
                    ready=wait == 0,
                )
                await self._writer.patch(pod, status)
                life.started = now
                if wait:
                    self._next(life, step.key, "ready", after(now, wait))
                self._plan_end(step.key, life, pod)
            case "settle":
                assert self._settled is not None  # only such a pool puts this step
                since = self._settled.since
                status = running_status(
                    pod,
                    pod_ip=self._writer.address(),
                    host_ip=self._keeper.address(life.node),
                    accepted=since,
                    started=since,
                    ready=True,
                )
                await self._writer.patch(pod, status)
                life.accepted = life.started = since
                self._timing.has_images(pod, since)
                self._plan_end(step.key, life, pod)
            case "ready":
                if life.restarting:
                    life.started = now
                await self._writer.patch(pod, ready_status(pod, life.lives(now), now=now))
                if life.restarts:
                    life.restarting = False
                    self._plan_end(step.key, life, pod)
            case "finish":
                await self._finish(step.key, life, pod, now)
            case "crash" | "wait" | "restart":
                await self._crashes.do(step, life, pod, now)
            case "resize":
                await self._resizer.resize(step.key, life, pod)
            case "resized":
                for container in await self._resizer.finish(step.key, life, pod):
                    wait = await self._writer.restart(life, pod, container, now, self._timing)
                    self._next(life, step.key, "ready", after(now, wait))
            case "end":
                await self._writer.delete(pod)
            case "collect":
                if not self._keeper.has(life.node):
                    await self._writer.delete(pod)
            case "lose":
                if _is(pod, "Ready") and self._keeper.is_failing(life.node):
                    await self._writer.patch(pod, unready_condition_status(pod, now))
            case "regain":
                if _is(pod, "ContainersReady") and not _is(pod, "Ready"):
                    await self._writer.patch(pod, ready_status(pod, life.lives(now), now=now))

    def _plan_end(self, key: Key, life: Life, pod: Pod) -> None:
        """Note when the pod ends by itself, if it does."""
        ending = self._ending(life, pod)
        if ending is not None:
            self._next(life, key, "finish", after(life.started or self._clock.now(), ending.runs_for))

    def _ending(self, life: Life, pod: Pod) -> Ending | None:
        return ending_of(pod, self._timing.draw(pod, "work", sum(life.restarts.values())))

    async def _finish(self, key: Key, life: Life, pod: Pod, now: Instant) -> None:
        """End the containers of a pod that has done its work, or has failed at it."""
        ending = self._ending(life, pod)
        if ending is None:
            return
        if ending.exit_code and pod.spec.restart_policy == "OnFailure":
            self.crash(key, exit_code=ending.exit_code)
            return
        await self._writer.patch(
            pod, finished_status(pod, life.lives(now), exit_code=ending.exit_code, now=now)
        )


def _is(pod: Pod, condition: str) -> bool:
    found = pod_condition(pod, condition)
    return found is not None and found.status == "True"
