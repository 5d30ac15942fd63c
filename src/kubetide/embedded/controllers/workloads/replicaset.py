"""The ReplicaSet controller: as many pods as asked for, and a status that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.changes import KnownStatuses
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.deletion_order import removal_order
from kubetide.embedded.controllers.workloads.owned_pods import OwnedPods, PodIndex, available_at, follow
from kubetide.embedded.controllers.workloads.templates import (
    Selectors,
    owner_reference,
    owners_patch,
    pod_from_template,
    status_patch,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS, REPLICA_SETS
from kubetide.objects.meta import Condition, Key, controller_of
from kubetide.objects.pod import Pod
from kubetide.objects.workload import ReplicaSet, WorkloadStatus
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.units.seeds import name_suffix
from kubetide.units.time import Instant, after, format_rfc3339, minutes, seconds
from kubetide.watching import Informer

# Source: kube-controller-manager 1.36: at most this many pods are made or removed in one sync.
_BURST = 500
# A creation or deletion that was not seen in this time is taken to have been missed.
_EXPECTATION_LIFE = minutes(5)


class ReplicaSetController:
    """Creates and deletes pods of ReplicaSets, adopts and releases them, and keeps the status.

    Until the cache has shown every pod that the last sync made or removed, the next sync of that
    ReplicaSet does not touch pods: so nothing is made twice, however late the cache is.

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
        replica_sets: Informer[ReplicaSet],
        pods: Informer[Pod],
        pod_index: PodIndex,
        writes_events: bool = False,
    ) -> None:
        self._writes_events = writes_events
        self._cluster = cluster
        self._clock = clock
        self._seed = seed
        self._replica_sets = replica_sets
        self._pods = pods
        self._index = pod_index
        self._events = EventWriter(cluster, clock, "replicaset-controller")
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._expected: dict[Key, dict[Key, bool]] = {}
        """By ReplicaSet: pods that should appear (True) or cease to be active (False)."""
        self._expected_since: dict[Key, Instant] = {}
        self._names_drawn: dict[str, int] = {}
        self._templates: dict[str, tuple[int, Json]] = {}
        self._siblings: dict[str, dict[str, None]] = {}
        """Uid of a ReplicaSet's own owner to the uids of all its ReplicaSets."""
        self._selectors = Selectors()
        self._statuses = KnownStatuses()
        self._create_failed: dict[Key, str] = {}

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        follow(self._replica_sets, self._replica_set_changed)
        self._index.subscribe("ReplicaSet", self._pod_changed, self._orphan_changed)
        await self._replica_sets.synced()
        await self._pods.synced()
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _replica_set_changed(self, key: Key, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._forget(key, old)
        if new is None:
            return
        owner = controller_of(new.metadata)
        if owner is not None:
            self._siblings.setdefault(owner.uid, {})[new.metadata.uid] = None
        if not self._statuses.is_echo(old, new):
            self._queue.add(key)

    def _forget(self, key: Key, gone: ReplicaSet) -> None:
        uid = gone.metadata.uid
        for by_key in (self._expected, self._expected_since, self._create_failed):
            by_key.pop(key, None)
        self._names_drawn.pop(uid, None)
        self._templates.pop(uid, None)
        self._selectors.forget(uid)
        self._statuses.forget(uid)
        self._queue.forget(key)
        owner = controller_of(gone.metadata)
        if owner is not None:
            siblings = self._siblings.get(owner.uid, {})
            siblings.pop(uid, None)
            if not siblings:
                self._siblings.pop(owner.uid, None)

    def _pod_changed(self, owner: Key, key: Key, pod: Pod | None, *, active: bool) -> None:
        expected = self._expected.get(owner)
        met = False
        if expected is not None and key in expected:
            appears = expected[key]
            if pod is None or appears or pod.metadata.deletion_timestamp is not None:
                del expected[key]
                met = not expected
        if active or met:
            self._queue.add(owner)

    def _orphan_changed(self, key: Key, pod: Pod) -> None:
        for rs_key, rs in self._replica_sets.objects.items():
            if rs_key[0] == key[0] and self._selects(rs, pod.metadata.labels):
                self._queue.add(rs_key)

    def _selects(self, rs: ReplicaSet, labels: dict[str, str] | None) -> bool:
        try:
            return self._selectors.of(rs.metadata.uid, rs.spec.selector).matches(labels or {})
        except ValueError:
            return False  # its own sync says so

    # ── bringing in line ──

    async def _sync(self, key: Key) -> None:
        rs = self._replica_sets.objects.get(key)
        if rs is None:
            return
        if rs.metadata.deletion_timestamp is None and self._expectations_met(key):
            await self._claim(rs)
            await self._manage(key, rs)
            if self._expected.get(key):
                # The pods just made or removed will ask for the next sync, and it knows their counts.
                return
        await self._write_status(key, rs)

    def _expectations_met(self, key: Key) -> bool:
        if not self._expected.get(key):
            return True
        due = after(self._expected_since[key], _EXPECTATION_LIFE)
        if self._clock.now() >= due:
            del self._expected[key]
            return True
        self._queue.add_at(key, due)
        return False

    async def _claim(self, rs: ReplicaSet) -> None:
        """Adopt orphans that the selector picks, and releases pods that it no longer picks."""
        orphans = self._index.orphans(rs.metadata.namespace)
        owned = self._index.owned_by(rs.metadata.uid)
        selector = self._selectors.of(rs.metadata.uid, rs.spec.selector)
        patches = [
            (pod, owners_patch(pod.metadata, add=owner_reference(REPLICA_SETS, rs.metadata)))
            for pod in orphans.values()
            if pod.metadata.deletion_timestamp is None and selector.matches(pod.metadata.labels or {})
        ]
        if any(not selector.matches(dict(labels)) for labels in owned.label_sets):
            patches += [
                (pod, owners_patch(pod.metadata, remove_uid=rs.metadata.uid))
                for pod in owned.active_pods()
                if not selector.matches(pod.metadata.labels or {})
            ]
        for pod, patch in patches:
            try:
                await self._cluster.patch(PODS, pod.metadata.name, patch, namespace=pod.metadata.namespace)
            except NotFound:
                continue
        if patches:
            # What is claimed now must be in the cache before pods are counted.
            raise Conflict(
                f"replicasets.apps {rs.metadata.name!r} has claimed {len(patches)} pod(s): counting again"
            )

    async def _manage(self, key: Key, rs: ReplicaSet) -> None:
        desired = 1 if rs.spec.replicas is None else rs.spec.replicas
        owned = self._index.owned_by(rs.metadata.uid)
        if owned.active < desired:
            await self._create(key, rs, min(desired - owned.active, _BURST))
        elif owned.active > desired:
            await self._delete(key, rs, self._surplus(rs, owned, min(owned.active - desired, _BURST)))
        self._create_failed.pop(key, None)

    async def _create(self, key: Key, rs: ReplicaSet, count: int) -> None:
        owner = owner_reference(REPLICA_SETS, rs.metadata)
        body = pod_from_template(await self._template(rs), owner, name="")
        expected = self._expect(key)
        for _ in range(count):
            try:
                await self._create_one(expected, rs, body)
            except ApiError as error:
                message = f"Error creating: {error}"
                self._create_failed[key] = message
                await self._write_status(key, rs)
                await self._events.record(REPLICA_SETS, rs.metadata, "Warning", "FailedCreate", message)
                raise

    async def _create_one(self, expected: dict[Key, bool], rs: ReplicaSet, body: Json) -> None:
        uid, namespace = rs.metadata.uid, rs.metadata.namespace
        while True:
            drawn = self._names_drawn.get(uid, 0)
            self._names_drawn[uid] = drawn + 1
            name = f"{rs.metadata.name}-{name_suffix(self._seed, 'pod', uid, drawn)}"
            body["metadata"]["name"] = name
            # Noted before the call: the cache may show the pod before the call returns.
            expected[namespace, name] = True
            try:
                await self._cluster.create(PODS, body, namespace=namespace)
            except AlreadyExists:
                expected.pop((namespace, name), None)
            except ApiError:
                expected.pop((namespace, name), None)
                raise
            else:
                await self._tell(rs, "SuccessfulCreate", f"Created pod: {name}")
                return

    async def _tell(self, rs: ReplicaSet, reason: str, message: str) -> None:
        if self._writes_events:
            await self._events.record(REPLICA_SETS, rs.metadata, "Normal", reason, message)

    async def _delete(self, key: Key, rs: ReplicaSet, surplus: Sequence[Pod]) -> None:
        expected = self._expect(key)
        namespace = rs.metadata.namespace
        for pod in surplus:
            pod_key = namespace, pod.metadata.name
            expected[pod_key] = False
            try:
                await self._cluster.delete(PODS, pod_key[1], namespace=namespace, uid=pod.metadata.uid)
            except NotFound:
                expected.pop(pod_key, None)  # the cache is about to say so, and asks for the next sync
            except ApiError:
                expected.pop(pod_key, None)
                raise
            else:
                await self._tell(rs, "SuccessfulDelete", f"Deleted pod: {pod_key[1]}")

    def _expect(self, key: Key) -> dict[Key, bool]:
        self._expected_since[key] = self._clock.now()
        return self._expected.setdefault(key, {})

    def _surplus(self, rs: ReplicaSet, owned: OwnedPods, count: int) -> list[Pod]:
        active = owned.active_pods()
        if count >= len(active):
            return active
        owner = controller_of(rs.metadata)
        family = list(self._siblings.get(owner.uid, {})) if owner is not None else [rs.metadata.uid]
        on_node = Counter(
            pod.spec.node_name
            for uid in family
            for pod in (active if uid == rs.metadata.uid else self._index.owned_by(uid).active_pods())
        )
        return removal_order(active, on_node, self._clock.now(), count)

    async def _template(self, rs: ReplicaSet) -> Json:
        """Return the template with all fields a user sent; the cache holds only those in use."""
        known = self._templates.get(rs.metadata.uid)
        if known is not None and known[0] == rs.metadata.generation != 0:
            return known[1]
        live = await self._cluster.get(
            REPLICA_SETS.untyped, rs.metadata.name, namespace=rs.metadata.namespace
        )
        if live["metadata"].get("uid") != rs.metadata.uid:
            raise NotFound(f'replicasets.apps "{rs.metadata.name}" was replaced by another of that name')
        template: Json = live["spec"].get("template") or {}
        self._templates[rs.metadata.uid] = (live["metadata"].get("generation", 0), template)
        return template

    # ── status ──

    async def _write_status(self, key: Key, rs: ReplicaSet) -> None:
        status = self._status(key, rs)
        self._statuses.note(rs.metadata.uid, status)
        patch = status_patch(rs.status, status, always=("replicas",))
        if patch is None:
            return
        await self._cluster.patch(REPLICA_SETS, key[1], patch, namespace=key[0], subresource="status")

    def _status(self, key: Key, rs: ReplicaSet) -> WorkloadStatus:
        owned = self._index.owned_by(rs.metadata.uid)
        template_labels = frozenset((rs.spec.template.metadata.labels or {}).items())
        return WorkloadStatus(
            observed_generation=rs.metadata.generation,
            replicas=owned.active,
            fully_labeled_replicas=sum(
                n for labels, n in owned.label_sets.items() if template_labels <= labels
            ),
            ready_replicas=owned.ready,
            available_replicas=self._available(key, rs, owned),
            conditions=self._conditions(key, rs),
        )

    def _available(self, key: Key, rs: ReplicaSet, owned: OwnedPods) -> int:
        if not rs.spec.min_ready_seconds:
            return owned.ready
        now, min_ready = self._clock.now(), seconds(rs.spec.min_ready_seconds)
        dues = [due for pod in owned.active_pods() if (due := available_at(pod, min_ready)) is not None]
        still_due = [due for due in dues if due > now]
        if still_due:
            self._queue.add_at(key, min(still_due))
        return len(dues) - len(still_due)

    def _conditions(self, key: Key, rs: ReplicaSet) -> tuple[Condition, ...] | None:
        others = tuple(c for c in rs.status.conditions or () if c.type != "ReplicaFailure")
        message = self._create_failed.get(key)
        if message is None:
            return others or None
        for condition in rs.status.conditions or ():
            if condition.type == "ReplicaFailure" and condition.message == message:
                return rs.status.conditions
        failure = Condition(
            type="ReplicaFailure",
            status="True",
            reason="FailedCreate",
            message=message,
            last_transition_time=format_rfc3339(self._clock.now()),
        )
        return (*others, failure)
