"""Objects in the recommender's caches, reduced to the fields that it reads."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubetide.objects.meta import ApiObject, ObjectMeta
from kubetide.objects.pod import Container, Pod, PodSpec, PodStatus, PodTemplate, ResourceRequirements
from kubetide.objects.vpa import VerticalPodAutoscalerCheckpoint
from kubetide.vertical.recommender.facts.views import CheckpointView


def slim_pod(pod: Pod) -> Pod:
    """Return a pod with labels, phase, and per container its name, memory requests and limits, and termination."""
    spec, status = pod.spec, pod.status
    return Pod(
        metadata=_meta(pod.metadata),
        spec=PodSpec(
            containers=tuple(map(_container, spec.containers or ())),
            init_containers=tuple(Container(name=one.name) for one in spec.init_containers or ()),
        ),
        status=PodStatus(phase=status.phase, container_statuses=status.container_statuses),
    )


def slim_pod_with_resources(pod: Pod) -> Pod:
    """Return the pod of ``slim_pod`` with the CPU and memory requests and limits of its containers."""
    slim = slim_pod(pod)
    containers = tuple(
        Container(
            name=one.name,
            resources=ResourceRequirements(requests=one.resources.requests, limits=one.resources.limits),
        )
        for one in pod.spec.containers or ()
    )
    return replace(slim, spec=replace(slim.spec, containers=containers))


def _container(container: Container) -> Container:
    requests, limits = (
        {"memory": amounts["memory"]} if amounts and "memory" in amounts else None
        for amounts in (container.resources.requests, container.resources.limits)
    )
    return Container(name=container.name, resources=ResourceRequirements(requests=requests, limits=limits))


def slim_controller(controller: ApiObject) -> ApiObject:
    """Return a controller with its owners, its selector and, for a CronJob, its pods' labels."""
    spec: Any = getattr(controller, "spec")  # noqa: B009  # every kind of controller has one, their base has not
    job: Any = getattr(spec, "job_template", None)
    if job is not None:
        template = PodTemplate(metadata=ObjectMeta(labels=job.spec.template.metadata.labels))
        spec = replace(spec, job_template=replace(job, spec=replace(job.spec, template=template)))
    elif getattr(spec, "template", None) is not None:
        spec = replace(spec, template=PodTemplate())
    return replace(controller, metadata=_meta(controller.metadata), spec=spec)


def slim_checkpoint(checkpoint: VerticalPodAutoscalerCheckpoint) -> CheckpointView:
    """Return a checkpoint with only its VPA and container."""
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
