"""Objects in the loop's caches, reduced to what the loop reads, if no other loop needs them whole.

Each gives an object of the same kind, so that a reader need not know whether it has the whole; of pods, a hundred
thousand of them, the view itself is held (``views.view_of_pod``).
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern

from kubetide.horizontal.facts.views import HpaView
from kubetide.horizontal.options.annotations import ours
from kubetide.horizontal.options.rollouts import REVISION
from kubetide.objects.hpa import HorizontalPodAutoscaler, HpaStatus
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import PodTemplate
from kubetide.objects.sharing import shared
from kubetide.objects.workload import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    WorkloadStatus,
)

_NO_TEMPLATE = PodTemplate()
_NO_STRATEGY = DeploymentStrategy()


def slim_hpa(
    hpa: HorizontalPodAutoscaler, view: HpaView | None = None, status: HpaStatus | None = None
) -> HorizontalPodAutoscaler:
    """Return the HPA with name, uid, version, generation, the annotations that are read here, spec and status.

    Args:
        view, status: What the loop holds of it. Where they say the same, they are held once: so of a status
            that the loop has written, and that comes back by watch.
    """
    meta = shared(hpa).metadata
    return HorizontalPodAutoscaler(
        metadata=ObjectMeta(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
            generation=meta.generation,
            annotations=ours(meta.annotations) or None,
        ),
        spec=view.spec if view is not None and view.spec == hpa.spec else hpa.spec,
        status=status if status is not None and status == hpa.status else hpa.status,
    )


def slim_deployment(item: Deployment) -> Deployment:
    """Return the Deployment with only its scale."""
    item = shared(item)
    spec = DeploymentSpec(
        replicas=item.spec.replicas,
        selector=item.spec.selector,
        template=_NO_TEMPLATE,
        strategy=_NO_STRATEGY,
    )
    return Deployment(metadata=_meta(item.metadata), spec=spec, status=_status(item.status.replicas))


def slim_replica_set(item: ReplicaSet) -> ReplicaSet:
    """Return the ReplicaSet with only its scale, owners and revision."""
    item = shared(item)
    spec = ReplicaSetSpec(replicas=item.spec.replicas, selector=item.spec.selector, template=_NO_TEMPLATE)
    return ReplicaSet(metadata=_meta(item.metadata), spec=spec, status=_status(item.status.replicas))


def _meta(meta: ObjectMeta) -> ObjectMeta:
    revision = (meta.annotations or {}).get(REVISION)
    return ObjectMeta(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        annotations=None if revision is None else _revision(intern(revision)),
        owner_references=meta.owner_references,
    )


# Most revisions are small numbers.
@lru_cache(maxsize=1 << 10)
def _revision(text: str) -> dict[str, str]:
    return {REVISION: text}


@lru_cache(maxsize=1 << 10)
def _status(replicas: int) -> WorkloadStatus:
    return WorkloadStatus(replicas=replicas)
