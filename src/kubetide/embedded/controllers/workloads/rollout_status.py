"""What a Deployment's status says of its rollout: pure rules.

Source: kube-controller-manager 1.36, pkg/controller/deployment (progress.go, sync.go); reasons and
messages are upstream's, as people and scripts match on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from kubetide.embedded.controllers.workloads.rollout import desired_replicas, fenceposts, total_replicas
from kubetide.objects.meta import Condition
from kubetide.objects.workload import Deployment, ReplicaSet, WorkloadStatus
from kubetide.units.time import Instant, after, format_rfc3339, parse_rfc3339, seconds

_DEFAULT_DEADLINE_S = 600
# Kubernetes' way to say that there is no deadline.
_NO_DEADLINE_S = (1 << 31) - 1


def condition_of(status: WorkloadStatus, kind: str) -> Condition | None:
    """Return the condition of that type, or None."""
    for condition in status.conditions or ():
        if condition.type == kind:
            return condition
    return None


def counts(deployment: Deployment, new: ReplicaSet | None, every: Sequence[ReplicaSet]) -> WorkloadStatus:
    """Return the status with fresh counts and the conditions as they were."""
    available = sum(rs.status.available_replicas for rs in every)
    return WorkloadStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(rs.status.replicas for rs in every),
        updated_replicas=0 if new is None else new.status.replicas,
        ready_replicas=sum(rs.status.ready_replicas for rs in every),
        available_replicas=available,
        unavailable_replicas=max(total_replicas(every) - available, 0),
        collision_count=deployment.status.collision_count,
        conditions=deployment.status.conditions,
    )


def with_availability(deployment: Deployment, status: WorkloadStatus, now: Instant) -> WorkloadStatus:
    """Add the Available condition."""
    least = desired_replicas(deployment) - fenceposts(deployment)[1]
    if status.available_replicas >= least:
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        verdict = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return with_condition(status, "Available", *verdict, now=now)


def with_progress(
    deployment: Deployment, status: WorkloadStatus, new: ReplicaSet | None, now: Instant
) -> WorkloadStatus:
    """Add the Progressing condition of a rollout, or take it away where there is no deadline."""
    if not has_deadline(deployment):
        return _without(status, "Progressing")
    known = condition_of(status, "Progressing")
    all_new = status.replicas == status.updated_replicas
    if all_new and known is not None and known.reason == "NewReplicaSetAvailable":
        return status  # it has been complete: what comes and goes now is scaling, not a rollout
    name = (
        f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    )
    if is_complete(deployment, status):
        message = f"{name} has successfully progressed."
        return with_condition(status, "Progressing", "True", "NewReplicaSetAvailable", message, now=now)
    if _has_moved(deployment.status, status):
        message = f"{name} is progressing."
        # A fresh update time is the point: the deadline counts from the last progress.
        return with_condition(
            status, "Progressing", "True", "ReplicaSetUpdated", message, now=now, always=True
        )
    due = progress_due(deployment, deployment.status)
    if due is not None and now >= due:
        message = f"{name} has timed out progressing."
        return with_condition(status, "Progressing", "False", "ProgressDeadlineExceeded", message, now=now)
    return status


def is_complete(deployment: Deployment, status: WorkloadStatus) -> bool:
    """Return whether all desired pods are new and available and no old pod is left."""
    desired = desired_replicas(deployment)
    return (
        status.updated_replicas == desired
        and status.replicas == desired
        and status.available_replicas == desired
        and status.observed_generation >= deployment.metadata.generation
    )


def has_deadline(deployment: Deployment) -> bool:
    """Return whether ``progressDeadlineSeconds`` is a limit at all."""
    return deployment.spec.progress_deadline_seconds != _NO_DEADLINE_S


def progress_due(deployment: Deployment, status: WorkloadStatus) -> Instant | None:
    """Return when a rollout that does not move will have timed out; None when it cannot (any more)."""
    known = condition_of(status, "Progressing")
    if known is None or known.reason in {"NewReplicaSetAvailable", "ProgressDeadlineExceeded"}:
        return None
    since = known.last_update_time or known.last_transition_time
    if since is None or not has_deadline(deployment):
        return None
    limit = deployment.spec.progress_deadline_seconds
    return after(parse_rfc3339(since), seconds(_DEFAULT_DEADLINE_S if limit is None else limit))


def with_condition(
    status: WorkloadStatus,
    kind: str,
    value: str,
    reason: str,
    message: str,
    *,
    now: Instant,
    always: bool = False,
) -> WorkloadStatus:
    """Set a condition; one that already says so (by status and reason) is left as it is, unless ``always``."""
    known = condition_of(status, kind)
    if known is not None and (known.status, known.reason) == (value, reason) and not always:
        return status
    text = format_rfc3339(now)
    changed_at = text
    if known is not None and known.status == value:
        changed_at = known.last_transition_time or text
    fresh = Condition(
        type=kind,
        status=value,
        reason=reason,
        message=message,
        last_transition_time=changed_at,
        last_update_time=text,
    )
    others = tuple(c for c in status.conditions or () if c.type != kind)
    return structs.replace(status, conditions=(*others, fresh))


def _without(status: WorkloadStatus, kind: str) -> WorkloadStatus:
    left = tuple(c for c in status.conditions or () if c.type != kind)
    return structs.replace(status, conditions=left or None)


def _has_moved(old: WorkloadStatus, new: WorkloadStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )
