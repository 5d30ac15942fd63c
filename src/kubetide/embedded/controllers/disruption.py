"""The disruption controller: how many pods a PodDisruptionBudget lets go now.

Source: kube-controller-manager 1.36, disruption controller. Expected pods are those that the owners
of the matching pods ask for; a percentage is rounded up, both of minAvailable and maxUnavailable.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.objects.kinds import PDBS
from kubetide.objects.meta import Condition, controller_of
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubetide.objects.workload import Deployment, ReplicaSet
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant, after, format_rfc3339, minutes, parse_rfc3339
from kubetide.watching import Informer, Key

from .owned_pods import follow, is_ready
from .templates import Selectors, scaled_value, status_patch
from .work_queue import WorkQueue

# An eviction that has not become a deletion after so long is taken to have failed.
_UNCONFIRMED = minutes(2)


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
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._pdbs = pdbs
        self._pods = pods
        self._replica_sets = replica_sets
        self._deployments = deployments
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._selectors = Selectors()
        self._covered: dict[Key, dict[Key, None]] = {}
        """By budget, the pods that it covers; kept so that a change of a pod costs no walk over all."""

    async def run(self) -> None:
        """Works until cancelled. The informers are run by whoever made them."""
        for informer in (self._pdbs, self._pods, self._replica_sets, self._deployments):
            await informer.synced()
        follow(self._pdbs, self._pdb_changed)
        self._pods.on_change(self._pod_changed)
        self._replica_sets.on_change(self._owner_changed)
        self._deployments.on_change(self._owner_changed)
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

    def _owner_changed(
        self, key: Key, old: Deployment | ReplicaSet | None, new: Deployment | ReplicaSet | None
    ) -> None:
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
        patch = status_patch(pdb.status, status, resource_version=pdb.metadata.resource_version)
        if patch is not None:
            await self._cluster.patch(PDBS, key[1], patch, namespace=key[0], subresource="status")

    def _status(self, key: Key, pdb: PodDisruptionBudget) -> PodDisruptionBudgetStatus:
        now = self._clock.now()
        pods = {
            pod_key[1]: pod
            for pod_key in self._covered[key]
            if (pod := self._pods.objects.get(pod_key)) is not None and not is_finished(pod)
        }
        expected = self._expected(key[0], pods.values())
        needed = _needed(pdb, expected)
        disrupted = self._still_disrupted(key, pdb, pods, now)
        healthy = sum(
            1
            for name, pod in pods.items()
            if pod.metadata.deletion_timestamp is None and name not in disrupted and is_ready(pod)
        )
        allowed = max(0, healthy - needed) if expected > 0 else 0
        return PodDisruptionBudgetStatus(
            observed_generation=pdb.metadata.generation,
            disruptions_allowed=allowed,
            current_healthy=healthy,
            desired_healthy=needed,
            expected_pods=expected,
            conditions=_conditions(pdb, allowed, now),
            disrupted_pods=disrupted or None,
        )

    def _expected(self, namespace: str, pods: Iterable[Pod]) -> int:
        """Pods that the owners ask for, each owner once; a pod without one counts itself."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None:
                owners[pod.metadata.uid] = 1
                continue
            if owner.uid in owners:
                continue
            replica_set = self._replica_sets.objects.get((namespace, owner.name))
            if owner.kind != "ReplicaSet" or replica_set is None:
                owners[pod.metadata.uid] = 1
                continue
            above = controller_of(replica_set.metadata)
            deployment = None if above is None else self._deployments.objects.get((namespace, above.name))
            if above is not None and deployment is not None:
                owners[above.uid] = _replicas(deployment)
            else:
                owners[owner.uid] = _replicas(replica_set)
        return sum(owners.values())

    def _still_disrupted(
        self, key: Key, pdb: PodDisruptionBudget, pods: dict[str, Pod], now: Instant
    ) -> dict[str, str]:
        """Evictions that are not yet seen as deletions, by pod."""
        kept: dict[str, str] = {}
        for name, since in sorted((pdb.status.disrupted_pods or {}).items()):
            pod = pods.get(name)
            due = after(parse_rfc3339(since), _UNCONFIRMED)
            if pod is None or pod.metadata.deletion_timestamp is not None or now >= due:
                continue
            kept[name] = since
            self._queue.add_at(key, due)
        return kept


def _same_to_budgets(old: Pod, new: Pod) -> bool:
    return (
        is_ready(old) == is_ready(new)
        and is_finished(old) == is_finished(new)
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
    )


def _replicas(owner: Deployment | ReplicaSet) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _needed(pdb: PodDisruptionBudget, expected: int) -> int:
    """Pods that must stay healthy; an unreadable value asks for all of them."""
    spec = pdb.spec
    try:
        if spec.max_unavailable is not None:
            return max(0, expected - scaled_value(spec.max_unavailable, expected, round_up=True))
        if spec.min_available is not None:
            return scaled_value(spec.min_available, expected, round_up=True)
    except ValueError:
        return expected
    return 0


def _conditions(pdb: PodDisruptionBudget, allowed: int, now: Instant) -> tuple[Condition, ...]:
    status, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    others = tuple(c for c in pdb.status.conditions or () if c.type != "DisruptionAllowed")
    for condition in pdb.status.conditions or ():
        if condition.type == "DisruptionAllowed" and condition.status == status:
            return pdb.status.conditions or ()
    condition = Condition(
        type="DisruptionAllowed", status=status, reason=reason, last_transition_time=format_rfc3339(now)
    )
    return (*others, condition)
