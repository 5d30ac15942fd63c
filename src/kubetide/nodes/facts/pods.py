"""Pod facts: pending, owned by a DaemonSet, a mirror pod, part of a ProvisioningRequest."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.facts.nodes import DAEMON_SET_POD_ANNOTATION, MIRROR_ANNOTATION, SOURCE_ANNOTATION
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod, PodStatus, pod_condition

REQUEST_ANNOTATIONS: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)

_TO_BE_CREATED: Final = re.compile(r"(.+)-wanted-\d{5,}")


def virtual_pod_name(workload: str, number: int) -> str:
    """Return the name that stands for a replica that does not exist yet."""
    return f"{workload}-wanted-{number:05d}"


def owner_text(pod: Pod) -> str:
    """Return the kind and name of the pod's controller, such as ``ReplicaSet default/web``; of the pod itself without one."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    return f"{owner.kind} {pod.metadata.namespace}/{owner.name}"


def pod_text(pod: Pod) -> str:
    """Return the pod's name for texts: ``namespace/name``, or a description if it does not exist yet."""
    namespace, name = pod.metadata.namespace, pod.metadata.name
    made_up = _TO_BE_CREATED.fullmatch(name)
    # What the API server has given a uid exists, whatever it is called.
    if made_up is not None and not pod.metadata.uid:
        return f"a pod of {namespace}/{made_up[1]} that is still to be created"
    return f"{namespace}/{name}"


def is_daemon_set_pod(pod: Pod) -> bool:
    """Return whether a DaemonSet owns the pod, or its annotation says so."""
    owner = controller_of(pod.metadata)
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return (pod.metadata.annotations or {}).get(DAEMON_SET_POD_ANNOTATION) == "true"


def is_mirror_pod(pod: Pod) -> bool:
    """Return whether the pod mirrors a static pod of a kubelet."""
    return MIRROR_ANNOTATION in (pod.metadata.annotations or {})


def is_static_pod(pod: Pod) -> bool:
    """Return whether the pod comes from a file or an address that its kubelet reads, and not from the API server."""
    return (pod.metadata.annotations or {}).get(SOURCE_ANNOTATION, "api") != "api"


def is_unschedulable(pod: Pod, settings: Settings) -> bool:
    """Return whether the scheduler found no node for the pod.

    Source: Cluster Autoscaler: PodScheduled is False with reason exactly ``Unschedulable``; for
    bypassed schedulers also pods they have not looked at. Terminating and gated pods do not count.
    """
    if pod.metadata.deletion_timestamp or pod.spec.scheduling_gates:
        return False
    scheduler = pod.spec.scheduler_name or "default-scheduler"
    if settings.allowed_scheduler_names and scheduler not in settings.allowed_scheduler_names:
        return False
    return found_no_node(pod) or (scheduler in settings.bypassed_scheduler_names and _is_unprocessed(pod))


def found_no_node(pod: Pod) -> bool:
    """Return whether the scheduler has looked at the pod and found no node for it."""
    scheduled = pod_condition(pod, "PodScheduled")
    return scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")


def _is_unprocessed(pod: Pod) -> bool:
    scheduled = pod_condition(pod, "PodScheduled")
    return scheduled is None or (scheduled.status == "False" and not scheduled.reason)


def consumes_request(pod: Pod) -> bool:
    """Return whether the pod names a ProvisioningRequest whose capacity it uses; where these are served it buys no nodes itself."""
    return consumed_request(pod) is not None


def consumed_request(pod: Pod) -> str | None:
    """Return the name of the ProvisioningRequest whose capacity the pod uses, None for none."""
    annotations = pod.metadata.annotations
    if not annotations:
        return None
    return next((annotations[name] for name in REQUEST_ANNOTATIONS if name in annotations), None)


def without_node(pod: Pod) -> Pod:
    """Return the pod as if it had no node."""
    return replace(pod, spec=replace(pod.spec, node_name=""), status=PodStatus(phase="Pending"))
