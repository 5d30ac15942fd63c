"""The DaemonSet controller: one pod on every node that the template may run on.

Each pod is pinned to its node by a required node affinity on ``metadata.name``, and the scheduler
binds it, as upstream does since 1.12. A node counts when the pod's selector, affinity and taints
allow it; room does not matter, the pod waits. Rolling updates are not done: a changed template holds
for new pods (upstream's OnDelete strategy). Source: kube-controller-manager 1.36.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.objects.base import Json
from kubetide.objects.kinds import DAEMON_SETS, PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, Toleration
from kubetide.objects.workload import DaemonSet, DaemonSetStatus
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, NotFound
from kubetide.scheduling import check_template, classify_unbound
from kubetide.units.seeds import name_suffix
from kubetide.units.time import Instant, after, minutes
from kubetide.watching import Informer, Key

from .owned_pods import PodIndex, follow, is_active, is_ready
from .templates import owner_reference, pod_from_template, status_patch, to_json
from .work_queue import WorkQueue

_EXPECTATION_LIFE = minutes(5)
_PLUGINS = frozenset({"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeName"})
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Taints that every DaemonSet pod tolerates. Source: Kubernetes documentation, DaemonSet."""
_TOLERATIONS = tuple(Toleration(key=key, operator="Exists", effect=effect) for key, effect in _TOLERATED)


class DaemonSetController:
    """Creates and deletes the pods of DaemonSets, and keeps the status."""

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
    ) -> None:
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
        self._drawn: dict[str, int] = {}

    async def run(self) -> None:
        """Works until cancelled. The informers are run by whoever made them."""
        for informer in (self._daemon_sets, self._nodes, self._pods):
            await informer.synced()
        follow(self._daemon_sets, self._daemon_set_changed)
        self._nodes.on_change(self._node_changed)
        self._index.subscribe("DaemonSet", self._pod_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _daemon_set_changed(self, key: Key, old: DaemonSet | None, new: DaemonSet | None) -> None:
        if new is None:
            self._made.pop(key, None)
            self._queue.forget(key)
            if old is not None:
                self._drawn.pop(old.metadata.uid, None)
            return
        self._queue.add(key)

    def _node_changed(self, _key: Key, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and _same_to_daemons(old, new):
            return
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
            self._made.get(owner, {}).pop(_node_of(pod), None)
        self._queue.add(owner)

    # ── pods ──

    async def _sync(self, key: Key) -> None:
        daemon_set = self._daemon_sets.objects.get(key)
        if daemon_set is None:
            return
        by_node: dict[str, list[Pod]] = {}
        for pod in self._index.owned_by(daemon_set.metadata.uid).pods.values():
            if is_active(pod):
                by_node.setdefault(_node_of(pod), []).append(pod)
        wanted = self._wanted(daemon_set)
        if daemon_set.metadata.deletion_timestamp is None:
            await self._create(key, daemon_set, [name for name in wanted if name not in by_node])
            surplus = [pod for name, pods in by_node.items() for pod in pods[name in wanted :]]
            for pod in surplus:
                try:
                    await self._cluster.delete(
                        PODS, pod.metadata.name, namespace=key[0], uid=pod.metadata.uid
                    )
                except NotFound:
                    continue
        await self._write_status(key, daemon_set, wanted, by_node)

    def _wanted(self, daemon_set: DaemonSet) -> dict[str, None]:
        """The nodes that should run a pod, in order of name."""
        template = daemon_set.spec.template
        tolerations = (*(template.spec.tolerations or ()), *_TOLERATIONS)
        pod = Pod(
            metadata=ObjectMeta(namespace=daemon_set.metadata.namespace, labels=template.metadata.labels),
            spec=replace(template.spec, tolerations=tolerations),
        )
        pod_class = classify_unbound(pod)
        wanted: dict[str, None] = {}
        for (_, name), node in sorted(self._nodes.objects.items()):
            refusal = check_template(pod_class, node, ())
            if refusal is None or refusal.plugin not in _PLUGINS:
                wanted[name] = None
        return wanted

    async def _create(self, key: Key, daemon_set: DaemonSet, names: list[str]) -> None:
        now = self._clock.now()
        made = self._made.setdefault(key, {})
        names = [name for name in names if made.get(name, now) <= now]
        if not names:
            return
        live = await self._cluster.get(DAEMON_SETS.untyped, key[1], namespace=key[0])
        owner = owner_reference(DAEMON_SETS, daemon_set.metadata)
        uid = daemon_set.metadata.uid
        for node in names:
            while True:
                self._drawn[uid] = drawn = self._drawn.get(uid, 0) + 1
                name = f"{key[1]}-{name_suffix(self._seed, 'pod', uid, drawn)}"
                body = pod_from_template(live["spec"].get("template") or {}, owner, name=name)
                body["spec"] = _pinned(body["spec"], node)
                made[node] = due = after(now, _EXPECTATION_LIFE)
                try:
                    await self._cluster.create(PODS, body, namespace=key[0])
                except AlreadyExists:
                    continue
                self._queue.add_at(key, due)
                break

    # ── status ──

    async def _write_status(
        self, key: Key, daemon_set: DaemonSet, wanted: dict[str, None], by_node: dict[str, list[Pod]]
    ) -> None:
        placed = [pods for name, pods in by_node.items() if name in wanted]
        ready = sum(any(is_ready(pod) for pod in pods) for pods in placed)
        status = DaemonSetStatus(
            observed_generation=daemon_set.metadata.generation,
            current_number_scheduled=len(placed),
            desired_number_scheduled=len(wanted),
            number_ready=ready,
            number_available=ready,
            number_unavailable=len(wanted) - ready,
            number_misscheduled=sum(name not in wanted for name in by_node),
            updated_number_scheduled=len(placed),
        )
        patch = status_patch(daemon_set.status, status)
        if patch is not None:
            await self._cluster.patch(DAEMON_SETS, key[1], patch, namespace=key[0], subresource="status")


def _node_of(pod: Pod) -> str:
    """The node that a DaemonSet pod is on or pinned to."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in (required and required.node_selector_terms) or ():
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.values:
                return field.values[0]
    return ""


def _pinned(spec: Json, node: str) -> Json:
    """The spec with the node pinned and the DaemonSet tolerations added; the given one is left alone."""
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    required: Json = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    pin = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    given: list[Json] = required.get("nodeSelectorTerms") or [{}]
    terms = [{**term, "matchFields": pin} for term in given]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    affinity["nodeAffinity"] = node_affinity
    tolerations = [*(spec.get("tolerations") or ()), *(to_json(toleration) for toleration in _TOLERATIONS)]
    return {**spec, "affinity": affinity, "tolerations": tolerations}


def _same_to_daemons(old: Node, new: Node) -> bool:
    return (
        old.metadata.labels == new.metadata.labels
        and old.spec.taints == new.spec.taints
        and old.spec.unschedulable == new.spec.unschedulable
    )
