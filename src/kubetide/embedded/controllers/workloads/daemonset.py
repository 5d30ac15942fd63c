"""The DaemonSet controller: one pod on every node that the template may run on.

Each pod is pinned to its node by a required node affinity on ``metadata.name``, and the scheduler
binds it, as upstream does since 1.12. A pod holds its node until it is gone, so that there are never
two of them. Pods that ended are removed and made anew, later each time. A rolling update removes old pods, and the
next ones are made from the new template; ``daemon_rollout`` says which. There is no history of templates.
Source: kube-controller-manager 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.daemon_pods import Eligibility, node_of, pinned
from kubetide.embedded.controllers.workloads.daemon_rollout import (
    is_available,
    is_updated,
    next_look,
    to_replace,
)
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex, follow, is_ready
from kubetide.embedded.controllers.workloads.stateful_plan import REVISION_LABEL
from kubetide.embedded.controllers.workloads.templates import (
    owner_reference,
    pod_from_template,
    status_patch,
    template_hash,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import DAEMON_SETS, PODS
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.workload import DaemonSet, DaemonSetStatus
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.scheduling.daemon_set_nodes import Verdict
from kubetide.units.seeds import name_suffix
from kubetide.units.time import Duration, Instant, after, minutes, seconds
from kubetide.watching import Informer

_EXPECTATION_LIFE = minutes(5)
# Source: upstream's back-off for failed daemon pods; it is forgotten after twice the longest pause.
_FIRST_PAUSE = seconds(1)
_LONGEST_PAUSE = minutes(15)
# Counts that the API requires, also when they are 0.
_ALWAYS_WRITTEN = (
    "current_number_scheduled",
    "number_misscheduled",
    "desired_number_scheduled",
    "number_ready",
)


class DaemonSetController:
    """Creates and deletes the pods of DaemonSets, and keeps the status.

    Args:
        writes_events: Whether an event is written for each pod, as upstream does. It doubles the writes, so only
            where people read them.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        seed: int,
        *,
        daemon_sets: Informer[DaemonSet],
        nodes: Informer[Node],
        pods: Informer[Pod],
        pod_index: PodIndex,
        writes_events: bool = False,
    ) -> None:
        self._writes_events = writes_events
        self._events = EventWriter(cluster, clock, "daemonset-controller")
        self._cluster = cluster
        self._clock = clock
        self._seed = seed
        self._daemon_sets = daemon_sets
        self._nodes = nodes
        self._pods = pods
        self._index = pod_index
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._made: dict[Key, dict[str, Instant]] = {}
        """By DaemonSet, nodes for which a pod was made that the cache has not shown, and until when that is believed."""
        self._ended: dict[Key, dict[str, tuple[Instant, Duration]]] = {}
        """By DaemonSet and node, when a pod that had ended was last removed, and the pause since then."""
        self._eligibility: dict[Key, Eligibility] = {}
        self._drawn: dict[str, int] = {}
        self._templates: dict[str, tuple[int, Json, str]] = {}
        """By uid: the generation, its whole template with the fields that the cache does not hold, and their revision."""

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        for informer in (self._daemon_sets, self._nodes, self._pods):
            await informer.synced()
        follow(self._daemon_sets, self._daemon_set_changed)
        self._nodes.on_change(self._node_changed)
        self._index.subscribe("DaemonSet", self._pod_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _daemon_set_changed(self, key: Key, old: DaemonSet | None, new: DaemonSet | None) -> None:
        if new is None:
            for by_key in (self._made, self._ended, self._eligibility):
                by_key.pop(key, None)
            self._queue.forget(key)
            if old is not None:
                self._drawn.pop(old.metadata.uid, None)
                self._templates.pop(old.metadata.uid, None)
            return
        self._queue.add(key)

    def _node_changed(self, node: Key, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and _same_to_daemons(old, new):
            return
        for eligibility in self._eligibility.values():
            eligibility.forget(node[1])
        if new is None:
            for ended in self._ended.values():
                ended.pop(node[1], None)
        for key in self._daemon_sets.objects:
            self._queue.add(key)

    def _pod_changed(
        self,
        owner: Key,
        _key: Key,
        pod: Pod | None,
        *,
        active: bool,  # noqa: ARG002  # also a pod on its way out holds its node
    ) -> None:
        if pod is not None:
            self._made.get(owner, {}).pop(node_of(pod), None)
        self._queue.add(owner)

    # ── pods ──

    async def _sync(self, key: Key) -> None:
        daemon_set = self._daemon_sets.objects.get(key)
        if daemon_set is None:
            return
        by_node: dict[str, list[Pod]] = {}
        for pod in self._index.owned_by(daemon_set.metadata.uid).pods.values():
            by_node.setdefault(node_of(pod), []).append(pod)
        verdicts = self._verdicts(key, daemon_set)
        template, revision = await self._template(daemon_set)
        now = self._clock.now()
        if daemon_set.metadata.deletion_timestamp is None:
            needing = [name for name, says in verdicts.items() if says == "run" and name not in by_node]
            await self._create(key, daemon_set, sorted(needing), template, revision)
            surplus = self._surplus(key, verdicts, by_node)
            desired = sum(says == "run" for says in verdicts.values())
            unseen = len(self._made.get(key, {}).keys() - by_node.keys())
            old = to_replace(daemon_set, by_node, revision, now, desired=desired, unseen=unseen)
            for pod in (*surplus, *(pod for pod in old if pod not in surplus)):
                await self._delete(key, daemon_set, pod)
        await self._write_status(key, daemon_set, verdicts, by_node, revision)
        due = next_look(daemon_set, [pod for pods in by_node.values() for pod in pods], now)
        if due is not None:
            self._queue.add_at(key, due)

    async def _template(self, daemon_set: DaemonSet) -> tuple[Json, str]:
        """Return the template as users sent it, and its revision."""
        meta = daemon_set.metadata
        known = self._templates.get(meta.uid)
        if known is None or known[0] != meta.generation:
            live = await self._cluster.get(DAEMON_SETS.untyped, meta.name, namespace=meta.namespace)
            if (live["metadata"].get("uid"), live["metadata"].get("generation")) != (
                meta.uid,
                meta.generation,
            ):
                raise Conflict(f"daemonsets.apps {meta.name!r} has changed: reading it again")
            template: Json = live["spec"].get("template") or {}
            known = self._templates[meta.uid] = meta.generation, template, template_hash(template)
        return known[1:]

    def _verdicts(self, key: Key, daemon_set: DaemonSet) -> dict[str, Verdict]:
        eligibility = self._eligibility.get(key)
        if eligibility is None or not eligibility.is_of(daemon_set.spec.template):
            eligibility = self._eligibility[key] = Eligibility(daemon_set)
        return {name: eligibility.verdict(node) for (_, name), node in self._nodes.objects.items()}

    def _surplus(
        self, key: Key, verdicts: Mapping[str, Verdict], by_node: Mapping[str, Sequence[Pod]]
    ) -> list[Pod]:
        """The pods to be removed: where none may be, all but the oldest elsewhere, and those that ended."""
        surplus: list[Pod] = []
        for node, pods in by_node.items():
            alive = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
            says = verdicts.get(node)
            if says is None:
                # What is bound to a node that is gone is left to the pod garbage collector.
                surplus += [pod for pod in alive if not pod.spec.node_name]
            elif says == "none":
                surplus += alive
            else:
                running = [pod for pod in alive if not is_finished(pod)]
                surplus += sorted(running, key=_age)[1:]
                surplus += [pod for pod in alive if is_finished(pod) and self._may_end(key, node, pod)]
        return surplus

    def _may_end(self, key: Key, node: str, pod: Pod) -> bool:
        """Return whether a pod that ended is removed now; one that failed again only after a pause that doubles."""
        if pod.status.phase != "Failed":
            return True
        now = self._clock.now()
        ended = self._ended.setdefault(key, {})
        known = ended.get(node)
        if known is None or now - known[0] > 2 * _LONGEST_PAUSE:
            ended[node] = now, _FIRST_PAUSE
            return True
        due = after(*known)
        if now < due:
            self._queue.add_at(key, due)
            return False
        ended[node] = now, Duration(min(2 * known[1], _LONGEST_PAUSE))
        return True

    async def _delete(self, key: Key, daemon_set: DaemonSet, pod: Pod) -> None:
        name = pod.metadata.name
        try:
            await self._cluster.delete(PODS, name, namespace=key[0], uid=pod.metadata.uid)
        except NotFound:
            return
        await self._tell(daemon_set, "SuccessfulDelete", f"Deleted pod: {name}")

    async def _tell(self, daemon_set: DaemonSet, reason: str, message: str) -> None:
        if self._writes_events:
            await self._events.record(DAEMON_SETS, daemon_set.metadata, "Normal", reason, message)

    async def _create(
        self, key: Key, daemon_set: DaemonSet, names: list[str], template: Json, revision: str
    ) -> None:
        now = self._clock.now()
        made = self._made.setdefault(key, {})
        for name in names:
            if made.get(name, now) > now:
                self._queue.add_at(key, made[name])
        names = [name for name in names if made.get(name, now) <= now]
        if not names:
            return
        owner = owner_reference(DAEMON_SETS, daemon_set.metadata)
        uid = daemon_set.metadata.uid
        for node in names:
            while True:
                self._drawn[uid] = drawn = self._drawn.get(uid, 0) + 1
                name = f"{key[1]}-{name_suffix(self._seed, 'pod', uid, drawn)}"
                body = pod_from_template(template, owner, name=name)
                labels = body["metadata"].get("labels") or {}
                body["metadata"]["labels"] = {**labels, REVISION_LABEL: revision}
                body["spec"] = pinned(body["spec"], node, daemon_set.spec.template.spec)
                made[node] = due = after(now, _EXPECTATION_LIFE)
                try:
                    await self._cluster.create(PODS, body, namespace=key[0])
                except AlreadyExists:
                    continue
                except ApiError:
                    made.pop(node, None)
                    raise
                self._queue.add_at(key, due)
                await self._tell(daemon_set, "SuccessfulCreate", f"Created pod: {name}")
                break

    # ── status ──

    async def _write_status(
        self,
        key: Key,
        daemon_set: DaemonSet,
        verdicts: Mapping[str, Verdict],
        by_node: Mapping[str, Sequence[Pod]],
        revision: str,
    ) -> None:
        now = self._clock.now()
        desired = sum(says == "run" for says in verdicts.values())
        placed = [min(pods, key=_age) for name, pods in by_node.items() if verdicts.get(name) == "run"]
        available = sum(is_available(daemon_set, pod, now) for pod in placed)
        status = DaemonSetStatus(
            observed_generation=daemon_set.metadata.generation,
            current_number_scheduled=len(placed),
            desired_number_scheduled=desired,
            number_ready=sum(is_ready(pod) for pod in placed),
            number_available=available,
            number_unavailable=desired - available,
            number_misscheduled=sum(verdicts.get(name) in {"keep", "none"} for name in by_node),
            updated_number_scheduled=sum(is_updated(pod, revision) for pod in placed),
        )
        patch = status_patch(daemon_set.status, status, always=_ALWAYS_WRITTEN)
        if patch is not None:
            await self._cluster.patch(DAEMON_SETS, key[1], patch, namespace=key[0], subresource="status")


def _age(pod: Pod) -> tuple[bool, str, str]:
    """Bound pods first, then the oldest; of two made in the same second, the first by name."""
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def _same_to_daemons(old: Node, new: Node) -> bool:
    return (
        old.metadata.labels == new.metadata.labels
        and old.spec.taints == new.spec.taints
        and old.spec.unschedulable == new.spec.unschedulable
    )
