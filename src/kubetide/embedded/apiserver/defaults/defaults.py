"""What the API server fills in when an object is created or replaced.

Only what controllers or schedulers rely on, and what ``kubectl get -o yaml`` surprises nobody with;
volumes and security contexts are left as they were sent. A given object is never changed:
the result is new where something was filled in and shares the rest. Filling in twice is filling in
once. ``null`` counts as absent.

Source: Kubernetes v1.36, the ``defaults.go`` of each API group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubetide.embedded.apiserver.defaults.devices import (
    resource_claim_defaults,
    resource_claim_template_defaults,
)
from kubetide.embedded.apiserver.defaults.inert import INERT_DEFAULTS
from kubetide.embedded.apiserver.defaults.storage import (
    claim_defaults,
    class_defaults,
    driver_defaults,
    volume_defaults,
)
from kubetide.embedded.apiserver.manifests.structure import misfits
from kubetide.objects.hpa_v1 import without_v1_annotations
from kubetide.objects.pod_requests import container_requests
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubetide.objects.base import Json
    from kubetide.objects.kinds import Kind

_POD_SPEC: Json = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER: Json = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE: Json = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_DEFAULT_METRIC: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_SCALE_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
# No window: an unset one means the controller's --horizontal-pod-autoscaler-downscale-stabilization.
_SCALE_DOWN: Json = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_POD_LEVEL_RESOURCES = frozenset({"cpu", "memory"})


def defaults(kind: Kind[Any], obj: Json, *, reads: bool = False) -> Json:
    """Return the object with every default of its kind filled in.

    An object that does not read as its type comes back as it is: validation names what is wrong. With
    ``reads`` the caller knows already that it does.
    """
    fill = _BY_KIND.get((kind.group, kind.kind))
    return fill(obj) if fill and (reads or not misfits(kind, obj)) else obj


def _filled(obj: Json | None, values: Json) -> Json:
    """Return the object with those members added that are absent or null."""
    if not obj:
        return dict(values)
    missing = {name: value for name, value in values.items() if obj.get(name) is None}
    return {**obj, **missing} if missing else obj


def _pod(obj: Json) -> Json:
    spec = _pod_spec(obj.get("spec"))
    spec = _filled(spec, {"enableServiceLinks": True})
    for name in ("containers", "initContainers"):
        if spec.get(name):
            containers = [_requests_from_limits(container) for container in spec[name]]
            if spec.get("hostNetwork"):
                containers = [_host_ports(container) for container in containers]
            spec = {**spec, name: containers}
    return {**obj, "spec": _pod_level_requests(spec)}


def _pod_spec(spec: Json | None) -> Json:
    """Return the spec with what holds for a pod and for a pod template."""
    spec = _filled(spec, _POD_SPEC)
    for name in ("containers", "initContainers"):
        if spec.get(name):
            spec = {**spec, name: [_container(container) for container in spec[name]]}
    return spec


def _container(container: Json) -> Json:
    container = _filled(
        container, {**_CONTAINER, "imagePullPolicy": _pull_policy(container.get("image") or "")}
    )
    if container.get("ports"):
        container = {
            **container,
            "ports": [_filled(port, {"protocol": "TCP"}) for port in container["ports"]],
        }
    for name in _PROBES:
        if container.get(name):
            container = {**container, name: _probe(container[name])}
    resources = container["resources"]
    for part in ("requests", "limits"):
        amounts = resources.get(part)
        if amounts and not all(isinstance(amount, str) for amount in amounts.values()):
            resources = {**resources, part: {name: _as_text(amount) for name, amount in amounts.items()}}
    return container if resources is container["resources"] else {**container, "resources": resources}


def _as_text(amount: Any) -> Any:
    """Return an amount that was sent as a number as a text, the one form in which the API gives quantities."""
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(Quantity.parse(amount)) if is_number else amount


def _probe(probe: Json) -> Json:
    if probe.get("httpGet"):
        probe = {**probe, "httpGet": _filled(probe["httpGet"], {"path": "/", "scheme": "HTTP"})}
    if probe.get("grpc"):
        probe = {**probe, "grpc": _filled(probe["grpc"], {"service": ""})}
    return _filled(probe, _PROBE)


def _pull_policy(image: str) -> str:
    """Return Always for the tag ``latest``, named or implied, else IfNotPresent."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _requests_from_limits(container: Json) -> Json:
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = _filled(resources.get("requests"), resources["limits"])
    return {**container, "resources": {**resources, "requests": requests}}


def _host_ports(container: Json) -> Json:
    """On the host's network a container port is the host's port."""
    if not container.get("ports"):
        return container
    ports = [
        port if port.get("hostPort") else {**port, "hostPort": port.get("containerPort", 0)}
        for port in container["ports"]
    ]
    return {**container, "ports": ports}


def _pod_level_requests(spec: Json) -> Json:
    """Return where the pod itself has limits, its requests default to its containers' sum, else to the limits."""
    resources = spec.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return spec
    try:
        inside = container_requests(spec)
    except QuantityError:
        return spec  # validation names the quantity
    requests = {
        **{name: str(amount) for name, amount in inside.items() if name in _POD_LEVEL_RESOURCES},
        **(resources.get("requests") or {}),
    }
    return {**spec, "resources": {**resources, "requests": _filled(requests, limits)}}


def _template(spec: Json) -> Json:
    template = spec.get("template") or {}
    return {**spec, "template": {**template, "spec": _pod_spec(template.get("spec"))}}


def _pod_template(obj: Json) -> Json:
    return _template(obj)


def _deployment(obj: Json) -> Json:
    spec = _filled(
        _template(obj.get("spec") or {}),
        {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    )
    strategy = _filled(spec.get("strategy"), {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = _filled(strategy.get("rollingUpdate"), {"maxSurge": "25%", "maxUnavailable": "25%"})
        strategy = {**strategy, "rollingUpdate": rolling}
    return {**obj, "spec": {**spec, "strategy": strategy}}


def _replica_set(obj: Json) -> Json:
    return {**obj, "spec": _filled(_template(obj.get("spec") or {}), {"replicas": 1})}


def _daemon_set(obj: Json) -> Json:
    spec = _filled(_template(obj.get("spec") or {}), {"revisionHistoryLimit": 10})
    strategy = _filled(spec.get("updateStrategy"), {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = _filled(strategy.get("rollingUpdate"), {"maxSurge": 0, "maxUnavailable": 1})
        strategy = {**strategy, "rollingUpdate": rolling}
    return {**obj, "spec": {**spec, "updateStrategy": strategy}}


def _stateful_set(obj: Json) -> Json:
    spec = _filled(
        _template(obj.get("spec") or {}),
        {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10},
    )
    strategy = _filled(spec.get("updateStrategy"), {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = _filled(strategy.get("rollingUpdate"), {"partition": 0})
        strategy = {**strategy, "rollingUpdate": rolling}
    retention = _filled(
        spec.get("persistentVolumeClaimRetentionPolicy"), {"whenDeleted": "Retain", "whenScaled": "Retain"}
    )
    spec = {**spec, "updateStrategy": strategy, "persistentVolumeClaimRetentionPolicy": retention}
    claims = spec.get("volumeClaimTemplates")
    if claims:
        spec["volumeClaimTemplates"] = [
            _filled(claim_defaults(claim), {"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
            for claim in claims
        ]
    return {**obj, "spec": spec}


def _job(obj: Json) -> Json:
    spec = _template(obj.get("spec") or {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        # One without the other says that the work itself knows when it is done.
        spec = {**spec, "completions": 1}
    filled = _filled(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "manualSelector": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "suspend": False,
        },
    )
    labels = (spec["template"].get("metadata") or {}).get("labels")
    metadata = obj.get("metadata") or {}
    if labels and not metadata.get("labels"):
        obj = {**obj, "metadata": {**metadata, "labels": labels}}
    return {**obj, "spec": filled}


def _cron_job(obj: Json) -> Json:
    spec = _filled(
        obj.get("spec"),
        {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
    )
    template = spec.get("jobTemplate") or {}
    inner = _template(template.get("spec") or {})
    return {**obj, "spec": {**spec, "jobTemplate": {**template, "spec": inner}}}


def _hpa(obj: Json) -> Json:
    spec = _filled(obj.get("spec"), {"minReplicas": 1})
    if not spec.get("metrics"):
        spec = {**spec, "metrics": [_DEFAULT_METRIC]}
    behavior = spec.get("behavior")
    if behavior is not None:
        # Both directions are written out as soon as one is given.
        spec = {
            **spec,
            "behavior": {
                **behavior,
                "scaleUp": _filled(behavior.get("scaleUp"), _SCALE_UP),
                "scaleDown": _filled(behavior.get("scaleDown"), _SCALE_DOWN),
            },
        }
    meta = obj.get("metadata") or {}
    annotations = meta.get("annotations")
    if annotations and len(kept := without_v1_annotations(annotations)) < len(annotations):
        obj = {**obj, "metadata": {**meta, "annotations": kept}}
    return {**obj, "spec": spec}


def _namespace(obj: Json) -> Json:
    metadata = obj.get("metadata") or {}
    name = metadata.get("name")
    if not name:
        return obj
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _node(obj: Json) -> Json:
    status = obj.get("status") or {}
    if not status.get("capacity"):
        return obj
    return {**obj, "status": _filled(status, {"allocatable": status["capacity"]})}


def _priority_class(obj: Json) -> Json:
    return _filled(obj, {"preemptionPolicy": "PreemptLowerPriority"})


_WEBHOOK: Json = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}


def _webhook(webhook: Json, values: Json) -> Json:
    webhook = _filled(webhook, values)
    if webhook.get("rules"):
        webhook["rules"] = [_filled(rule, {"scope": "*"}) for rule in webhook["rules"]]
    service = (webhook.get("clientConfig") or {}).get("service")
    if service:
        webhook["clientConfig"] = {**webhook["clientConfig"], "service": _filled(service, {"port": 443})}
    return webhook


def _webhooks(obj: Json, values: Json) -> Json:
    if not obj.get("webhooks"):
        return obj
    return {**obj, "webhooks": [_webhook({**webhook}, values) for webhook in obj["webhooks"]]}


def _mutating(obj: Json) -> Json:
    return _webhooks(obj, {**_WEBHOOK, "reinvocationPolicy": "Never"})


def _validating(obj: Json) -> Json:
    return _webhooks(obj, _WEBHOOK)


_BY_KIND: dict[tuple[str, str], Callable[[Json], Json]] = {
    ("", "Pod"): _pod,
    ("", "Node"): _node,
    ("", "Namespace"): _namespace,
    ("", "PodTemplate"): _pod_template,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): _hpa,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _mutating,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _validating,
    ("", "PersistentVolume"): volume_defaults,
    ("", "PersistentVolumeClaim"): claim_defaults,
    ("storage.k8s.io", "StorageClass"): class_defaults,
    ("storage.k8s.io", "CSIDriver"): driver_defaults,
    ("resource.k8s.io", "ResourceClaim"): resource_claim_defaults,
    ("resource.k8s.io", "ResourceClaimTemplate"): resource_claim_template_defaults,
    **INERT_DEFAULTS,
}
