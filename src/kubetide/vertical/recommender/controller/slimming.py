"""What caches hold for the recommender: objects with only the fields that it reads."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubetide.objects.meta import ApiObject, ObjectMeta
from kubetide.objects.pod import Container, Pod, PodSpec, PodStatus, PodTemplate, ResourceRequirements
from kubetide.objects.vpa import VerticalPodAutoscalerCheckpoint
from kubetide.vertical.recommender.views import CheckpointView


def slim_pod(pod: Pod) -> Pod:
    """Return a pod with labels, phase, names of containers, their memory requests and how they ended."""
    spec, status = pod.spec, pod.status
    return Pod(
        metadata=_meta(pod.metadata),
        spec=PodSpec(
            containers=tuple(map(_container, spec.containers or ())),
            init_containers=tuple(Container(name=one.name) for one in spec.init_containers or ()),
        ),
        status=PodStatus(phase=status.phase, container_statuses=status.container_statuses),
    )


def _container(container: Container) -> Container:
    memory = (container.resources.requests or {}).get("memory")
    requests = None if memory is None else {"memory": memory}
    return Container(name=container.name, resources=ResourceRequirements(requests=requests))


def slim_controller(controller: ApiObject) -> ApiObject:
    """Return a controller with its owners, its selector and, of a CronJob, its pods' labels."""
    spec: Any = getattr(controller, "spec")  # noqa: B009  # every kind of controller has one, their base has not
    job: Any = getattr(spec, "job_template", None)
    if job is not None:
        template = PodTemplate(metadata=ObjectMeta(labels=job.spec.template.metadata.labels))
        spec = replace(spec, job_template=replace(job, spec=replace(job.spec, template=template)))
    elif getattr(spec, "template", None) is not None:
        spec = replace(spec, template=PodTemplate())
    return replace(controller, metadata=_meta(controller.metadata), spec=spec)


def slim_checkpoint(checkpoint: VerticalPodAutoscalerCheckpoint) -> CheckpointView:
    """Return what tells whose checkpoint it is."""
    meta = checkpoint.metadata
    return CheckpointView(meta.namespace, meta.name, checkpoint.spec.vpa_object_name)


def _meta(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        labels=meta.labels,
        owner_references=meta.owner_references,
    )
