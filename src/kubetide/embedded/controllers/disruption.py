"""The disruption controller: how many pods a PodDisruptionBudget lets go now.

With a number as minAvailable all matching pods are expected; else those that the owners of the
matching pods ask for. A percentage is rounded up, both of minAvailable and maxUnavailable. Then pods
without a controller are not counted, and an owner of unknown scale allows nothing. ReplicaSets, Deployments
and StatefulSets are known here: owners of other kinds are not asked through their scale subresource.
Source: kube-controller-manager 1.36, disruption controller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.owned_pods import follow, is_ready
from kubetide.embedded.controllers.workloads.templates import Selectors, scaled_value, status_patch
from kubetide.objects.kinds import PDBS
from kubetide.objects.meta import Condition, Key, controller_of
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import Deployment, ReplicaSet
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant, after, format_rfc3339, minutes, parse_rfc3339
from kubetide.watching import Informer

# An eviction that has not become a deletion after so long is taken to have failed.
_UNCONFIRMED = minutes(2)
# Counts that the API requires, also when they are 0.
_ALWAYS_WRITTEN = ("disruptions_allowed", "current_healthy", "desired_healthy", "expected_pods")
_ALLOWED = "DisruptionAllowed"

_Owner = Deployment | ReplicaSet | StatefulSet


class _UnknownScaleError(Exception):
    """A matching pod's owner is gone or of a kind whose scale is not known: nothing may be allowed."""


class DisruptionController:
    """Keeps the status of every PodDisruptionBudget."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        pdbs: Informer[PodDisruptionBudget],
        pods: Informer[Pod],
        replica_sets: Informer[ReplicaSet],
        deployments: Informer[Deployment],
        stateful_sets: Informer[StatefulSet],
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._pdbs = pdbs
        self._pods = pods
        self._replica_sets = replica_sets
        self._deployments = deployments
        self._stateful_sets = stateful_sets
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._selectors = Selectors()
        self._covered: dict[Key, dict[Key, None]] = {}
        """By budget, the pods that it covers; cached so that a change of a pod costs no walk over all."""

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        owners = (self._replica_sets, self._deployments, self._stateful_sets)
        for informer in (self._pdbs, self._pods, *owners):
            await informer.synced()
        follow(self._pdbs, self._pdb_changed)
        self._pods.on_change(self._pod_changed)
        self._replica_sets.on_change(self._owner_changed)
        self._deployments.on_change(self._owner_changed)
        self._stateful_sets.on_change(self._owner_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _pdb_changed(
        self, key: Key, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None
    ) -> None:
        if new is None:
            self._covered.pop(key, None)
            self._queue.forget(key)
            if old is not None:
                self._selectors.forget(old.metadata.uid)
            return
        if old is None or old.spec.selector != new.spec.selector:
            selector = self._selector(new)
            self._covered[key] = {
                pod_key: None
                for pod_key, pod in self._pods.objects.items()
                if pod_key[0] == key[0] and selector.matches(pod.metadata.labels or {})
            }
        self._queue.add(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and _same_to_budgets(old, new):
            return
        for pdb_key, covered in self._covered.items():
            if pdb_key[0] != key[0]:
                continue
            matches = new is not None and self._selector(self._pdbs.objects[pdb_key]).matches(
                new.metadata.labels or {}
            )
            if matches:
                covered[key] = None
            elif covered.pop(key, self) is self:
                continue
            self._queue.add(pdb_key)

    def _owner_changed(self, key: Key, old: _Owner | None, new: _Owner | None) -> None:
        if old is not None and new is not None and old.spec.replicas == new.spec.replicas:
            return
        for pdb_key in self._covered:
            if pdb_key[0] == key[0]:
                self._queue.add(pdb_key)

    def _selector(self, pdb: PodDisruptionBudget) -> Selector:
        try:
            return self._selectors.of(pdb.metadata.uid, pdb.spec.selector)
        except ValueError:
            return Selector.nothing()

    # ── the status ──

    async def _sync(self, key: Key) -> None:
        pdb = self._pdbs.objects.get(key)
        if pdb is None:
            return
        status = self._status(key, pdb)
        patch = status_patch(
            pdb.status, status, resource_version=pdb.metadata.resource_version, always=_ALWAYS_WRITTEN
        )
        if patch is not None:
            await self._cluster.patch(PDBS, key[1], patch, namespace=key[0], subresource="status")

    def _status(self, key: Key, pdb: PodDisruptionBudget) -> PodDisruptionBudgetStatus:
        now = self._clock.now()
        pods = {
            pod_key[1]: pod
            for pod_key in self._covered[key]
            if (pod := self._pods.objects.get(pod_key)) is not None
        }
        try:
            expected, needed = self._counts(key[0], pdb, pods.values())
        except (_UnknownScaleError, ValueError) as error:
            conditions = _conditions(pdb, "False", "SyncFailed", str(error), now)
            return replace(pdb.status, disruptions_allowed=0, conditions=conditions)
        disrupted = self._still_disrupted(key, pdb, pods, now)
        healthy = sum(
            1
            for name, pod in pods.items()
            if pod.metadata.deletion_timestamp is None and name not in disrupted and is_ready(pod)
        )
        allowed = max(0, healthy - needed) if expected > 0 else 0
        verdict = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
        return PodDisruptionBudgetStatus(
            observed_generation=pdb.metadata.generation,
            disruptions_allowed=allowed,
            current_healthy=healthy,
            desired_healthy=needed,
            expected_pods=expected,
            conditions=_conditions(pdb, *verdict, "", now),
            disrupted_pods=disrupted or None,
        )

    def _counts(self, namespace: str, pdb: PodDisruptionBudget, pods: Collection[Pod]) -> tuple[int, int]:
        """Return how many pods there should be and how many of them must stay healthy.

        Raises: _UnknownScaleError for a pod whose owner's scale is not known; ValueError for a value
        that is neither a number nor a percentage.
        """
        most, least = pdb.spec.max_unavailable, pdb.spec.min_available
        if most is not None:
            expected = self._expected(namespace, pods)
            return expected, max(0, expected - scaled_value(most, expected, round_up=True))
        if isinstance(least, int):
            return len(pods), least
        if least is not None:
            expected = self._expected(namespace, pods)
            return expected, scaled_value(least, expected, round_up=True)
        return 0, 0

    def _expected(self, namespace: str, pods: Iterable[Pod]) -> int:
        """Pods that the owners ask for, each owner once; pods without a controller are not counted."""
        owners: dict[str, int] = {}
        asked: dict[str, None] = {}
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None or owner.uid in asked:
                continue
            asked[owner.uid] = None
            stateful_set = self._stateful_sets.objects.get((namespace, owner.name))
            if owner.kind == "StatefulSet" and stateful_set and stateful_set.metadata.uid == owner.uid:
                owners[owner.uid] = _replicas(stateful_set)
                continue
            replica_set = self._replica_sets.objects.get((namespace, owner.name))
            if owner.kind != "ReplicaSet" or replica_set is None or replica_set.metadata.uid != owner.uid:
                raise _UnknownScaleError(
                    f"found no controllers for pod {pod.metadata.name!r}: "
                    f"the scale of {owner.kind} {owner.name!r} is not known"
                )
            above = controller_of(replica_set.metadata)
            deployment = None if above is None else self._deployments.objects.get((namespace, above.name))
            if above is not None and deployment is not None and deployment.metadata.uid == above.uid:
                owners[above.uid] = _replicas(deployment)
            else:
                owners[owner.uid] = _replicas(replica_set)
        return sum(owners.values())

    def _still_disrupted(
        self, key: Key, pdb: PodDisruptionBudget, pods: dict[str, Pod], now: Instant
    ) -> dict[str, str]:
        """Evictions that are not yet seen as deletions, by pod."""
        remaining: dict[str, str] = {}
        for name, since in sorted((pdb.status.disrupted_pods or {}).items()):
            pod = pods.get(name)
            due = after(parse_rfc3339(since), _UNCONFIRMED)
            if pod is None or pod.metadata.deletion_timestamp is not None or now >= due:
                continue
            remaining[name] = since
            self._queue.add_at(key, due)
        return remaining


def _same_to_budgets(old: Pod, new: Pod) -> bool:
    return (
        is_ready(old) == is_ready(new)
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
    )


def _replicas(owner: _Owner) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _conditions(
    pdb: PodDisruptionBudget, status: str, reason: str, message: str, now: Instant
) -> tuple[Condition, ...]:
    """The conditions with DisruptionAllowed set; its time moves only when its status does."""
    present = pdb.status.conditions or ()
    known = next((c for c in present if c.type == _ALLOWED), None)
    same = known is not None and known.status == status
    if same and known is not None and (known.reason, known.message) == (reason, message):
        return present
    since = known.last_transition_time if same and known is not None else format_rfc3339(now)
    condition = Condition(
        type=_ALLOWED, status=status, reason=reason, message=message, last_transition_time=since
    )
    return (*(c for c in present if c.type != _ALLOWED), condition)
