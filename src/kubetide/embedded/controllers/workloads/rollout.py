"""How a Deployment's rollout goes on: pure rules over the Deployment and its ReplicaSets.

Source: kube-controller-manager 1.36, pkg/controller/deployment (rolling.go, recreate.go, sync.go)
and its util; its steps have the same names where that helps to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetide.embedded.controllers.workloads.templates import scaled_value
from kubetide.objects.kinds import DEPLOYMENTS
from kubetide.objects.workload import Deployment, ReplicaSet, RollingUpdate

REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"

_DEFAULT_ROLLING_UPDATE = RollingUpdate(max_surge="25%", max_unavailable="25%")
_DEFAULT_HISTORY = 10


class Resize(NamedTuple):
    """A ReplicaSet and the replicas it shall have; also when only its annotations are out of date."""

    replica_set: ReplicaSet
    replicas: int


def desired_replicas(workload: Deployment | ReplicaSet) -> int:
    """Return ``spec.replicas``, 1 when it is not set."""
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def total_replicas(replica_sets: Sequence[ReplicaSet]) -> int:
    """Return the sum of ``spec.replicas``."""
    return sum(desired_replicas(rs) for rs in replica_sets)


def is_rolling(deployment: Deployment) -> bool:
    """Return whether the strategy is RollingUpdate, which is the default."""
    return deployment.spec.strategy.type in {"", "RollingUpdate"}


def fenceposts(deployment: Deployment) -> tuple[int, int]:
    """Return how many pods may be there too many (rounded up) and too few (rounded down).

    When both come to 0 one pod may be missing, or nothing could ever move.
    Raises: ValueError that names the Deployment when a value is neither a number nor a percentage.
    """
    if not is_rolling(deployment):
        return 0, 0
    given = deployment.spec.strategy.rolling_update or _DEFAULT_ROLLING_UPDATE
    desired = desired_replicas(deployment)
    try:
        surge = scaled_value(_or(given.max_surge, "25%"), desired, round_up=True)
        unavailable = scaled_value(_or(given.max_unavailable, "25%"), desired, round_up=False)
    except ValueError as error:
        meta = deployment.metadata
        raise ValueError(
            f"{DEPLOYMENTS.resource} {meta.namespace}/{meta.name}: spec.strategy.rollingUpdate: {error}"
        ) from error
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, desired)


def max_total(deployment: Deployment) -> int:
    """Return how many pods the rollout may have at most."""
    return desired_replicas(deployment) + fenceposts(deployment)[0]


def new_replicas(deployment: Deployment, every: Sequence[ReplicaSet], current: int) -> int:
    """Return the replicas for the new ReplicaSet, which has ``current`` now: as many as surge allows."""
    desired = desired_replicas(deployment)
    if not is_rolling(deployment):
        return desired
    surge_left = max_total(deployment) - total_replicas(every)
    return current if surge_left <= 0 else current + min(surge_left, desired - current)


def step_rolling_update(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Return the next step of a rolling update: the new one up, else the old ones down; empty when it is done or must wait."""
    current, desired = desired_replicas(new), desired_replicas(deployment)
    if current != desired:
        target = desired if current > desired else new_replicas(deployment, [*old, new], current)
        if target != current:
            return [Resize(new, target)]
    return _old_down(deployment, new, old)


def _old_down(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    if total_replicas(old) == 0:
        return []
    least = desired_replicas(deployment) - fenceposts(deployment)[1]
    new_unavailable = desired_replicas(new) - new.status.available_replicas
    may_go = total_replicas([*old, new]) - least - new_unavailable
    if may_go <= 0:
        return []
    oldest_first = sorted(old, key=age)
    sizes = {rs.metadata.uid: desired_replicas(rs) for rs in oldest_first}
    # Pods that are not available go first: they serve nobody.
    removed = 0
    for rs in oldest_first:
        size = sizes[rs.metadata.uid]
        unhealthy = min(may_go - removed, size - min(rs.status.available_replicas, size))
        sizes[rs.metadata.uid] -= unhealthy
        removed += unhealthy
    # A status may still count pods that the last resize removes: upstream counts them too, and can
    # fall below its bound when one rollout overtakes another. At most the size is available here.
    available = sum(min(rs.status.available_replicas, desired_replicas(rs)) for rs in [*old, new])
    spare = max(available - least, 0)
    for rs in oldest_first:
        healthy = min(sizes[rs.metadata.uid], spare)
        sizes[rs.metadata.uid] -= healthy
        spare -= healthy
    return [
        Resize(rs, sizes[rs.metadata.uid])
        for rs in oldest_first
        if sizes[rs.metadata.uid] != desired_replicas(rs)
    ]


def step_scale(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Return the sizes after the Deployment itself was scaled.

    One active ReplicaSet takes it all. In the midst of a rolling update the change is shared in
    proportion to the sizes, so that a bad new version does not get all new pods; what rounding
    leaves over goes to the largest.
    """
    every = [*old, *([] if new is None else [new])]
    active = [rs for rs in every if desired_replicas(rs) > 0]
    desired = desired_replicas(deployment)
    if len(active) <= 1:
        newest_old = max(old, key=age, default=None)
        lone = active[0] if active else (new if new is not None else newest_old)
        return [] if lone is None or not _is_stale(deployment, lone, desired) else [Resize(lone, desired)]
    if new is not None and _is_saturated(deployment, new):
        return [Resize(rs, 0) for rs in old if desired_replicas(rs) > 0]
    if not is_rolling(deployment):
        return []
    return _proportional(deployment, active)


def _proportional(deployment: Deployment, active: Sequence[ReplicaSet]) -> list[Resize]:
    allowed = max_total(deployment) if desired_replicas(deployment) > 0 else 0
    to_add = allowed - total_replicas(active)
    # When it grows, the newer of two equally large is served first; when it shrinks, the older.
    byage = sorted(active, key=age, reverse=to_add > 0)
    ordered = sorted(byage, key=lambda rs: -desired_replicas(rs))
    sizes: list[int] = []
    added = 0
    for rs in ordered:
        share = _share(deployment, rs, to_add, added)
        sizes.append(desired_replicas(rs) + share)
        added += share
    sizes[0] = max(sizes[0] + to_add - added, 0)
    return [
        Resize(rs, size) for rs, size in zip(ordered, sizes, strict=True) if _is_stale(deployment, rs, size)
    ]


def _share(deployment: Deployment, rs: ReplicaSet, to_add: int, added: int) -> int:
    size = desired_replicas(rs)
    if size == 0 or to_add in {0, added}:
        return 0
    fraction = _fraction(deployment, rs)
    return min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)


def _fraction(deployment: Deployment, rs: ReplicaSet) -> int:
    size = desired_replicas(rs)
    if desired_replicas(deployment) == 0:
        return -size
    before = _annotated(rs, MAX_REPLICAS)
    if before is None or before <= 0:
        before = deployment.status.replicas
    if before <= 0:
        return 0
    grown = size * max_total(deployment) / before
    # Go's rounding: halves away from zero; sizes are never negative.
    return int(grown + 0.5) - size


def is_scaling(deployment: Deployment, every: Sequence[ReplicaSet]) -> bool:
    """Return whether the Deployment was scaled since its active ReplicaSets were last sized."""
    desired = desired_replicas(deployment)
    return any(
        (annotated := _annotated(rs, DESIRED_REPLICAS)) is not None and annotated != desired
        for rs in every
        if desired_replicas(rs) > 0
    )


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """Return the annotations by which a ReplicaSet remembers what it was sized for."""
    return {DESIRED_REPLICAS: str(desired_replicas(deployment)), MAX_REPLICAS: str(max_total(deployment))}


def revision_of(workload: Deployment | ReplicaSet) -> int:
    """Return the revision annotation, 0 when there is none or it is not a number."""
    text = (workload.metadata.annotations or {}).get(REVISION, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def history_to_delete(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return the old, empty ReplicaSets past ``revisionHistoryLimit``, the lowest revisions first."""
    limit = deployment.spec.revision_history_limit
    limit = _DEFAULT_HISTORY if limit is None else limit
    alive = [rs for rs in old if rs.metadata.deletion_timestamp is None]
    surplus = len(alive) - limit
    if surplus <= 0:
        return []
    ordered = sorted(alive, key=lambda rs: (revision_of(rs), age(rs)))
    return [
        rs
        for rs in ordered[:surplus]
        if rs.status.replicas == 0
        and rs.spec.replicas == 0
        and rs.metadata.generation <= rs.status.observed_generation
    ]


def _is_saturated(deployment: Deployment, rs: ReplicaSet) -> bool:
    desired = desired_replicas(deployment)
    return (
        _annotated(rs, DESIRED_REPLICAS) == desired
        and desired_replicas(rs) == desired
        and rs.status.available_replicas == desired
    )


def _is_stale(deployment: Deployment, rs: ReplicaSet, size: int) -> bool:
    return desired_replicas(rs) != size or _annotated(rs, DESIRED_REPLICAS) != desired_replicas(deployment)


def _annotated(rs: ReplicaSet, name: str) -> int | None:
    text = (rs.metadata.annotations or {}).get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def age(rs: ReplicaSet) -> tuple[str, str]:
    return rs.metadata.creation_timestamp or "", rs.metadata.name


def _or(value: str | int | None, default: str) -> str | int:
    return default if value is None else value
