"""PodTemplates, ProvisioningRequests, buffers and quotas, and a small world that has them."""

from __future__ import annotations

from tests.nodes.frozen import LONG_AGO, START, World, convert, group, node, pod

from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.objects.capacity import CapacityBuffer, CapacityQuota, PodTemplateObject, ProvisioningRequest
from kubetide.objects.quota import ResourceQuota
from kubetide.testing import builders
from kubetide.units.time import before, format_rfc3339

CHECK = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


def _meta(name, created):
    return {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": created,
        "resourceVersion": "7",
        "generation": 2,
    }


def pod_template(name, *, cpu="1", memory="1Gi", generation=1):
    body = {
        "metadata": {"name": name, "namespace": "default", "generation": generation},
        "template": {"metadata": {"labels": {"of": name}}, "spec": builders.pod_spec(cpu=cpu, memory=memory)},
    }
    return convert(body, PodTemplateObject)


SMALL = pod_template("small", cpu="1")
BIG = pod_template("big", cpu="3")
TEMPLATES = (SMALL, BIG)


def request(name, *sets, kind=CHECK, created=LONG_AGO, conditions=(), **parameters):
    spec = {
        "provisioningClassName": kind,
        "parameters": parameters,
        "podSets": [{"podTemplateRef": {"name": one}, "count": count} for one, count in sets],
    }
    status = {"conditions": list(conditions)}
    return convert({"metadata": _meta(name, created), "spec": spec, "status": status}, ProvisioningRequest)


def buffer(name, *, created=LONG_AGO, conditions=(), **spec):
    status = {"conditions": list(conditions)}
    return convert({"metadata": _meta(name, created), "spec": spec, "status": status}, CapacityBuffer)


def quota(name, resources, selector=None):
    spec = {"limits": {"resources": resources}, **({"selector": selector} if selector else {})}
    return convert({"metadata": {**_meta(name, LONG_AGO), "namespace": ""}, "spec": spec}, CapacityQuota)


def resource_quota(name, hard, used=None, *, scopes=(), expressions=(), namespace="default"):
    """A ResourceQuota in force; expressions are (scope, operator, values)."""
    selectors = [{"scopeName": one, "operator": how, "values": list(of)} for one, how, of in expressions]
    body = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"hard": hard, "scopes": list(scopes), "scopeSelector": {"matchExpressions": selectors}},
        "status": {"hard": hard, "used": used or {}},
    }
    return convert(body, ResourceQuota)


def conditions_of(status):
    """Return status, reason and message of each condition, by its type."""
    return {one.type: (one.status, one.reason, one.message) for one in status.conditions or ()}


def world(
    *,
    requests=(),
    buffers=(),
    quotas=(),
    resource_quotas=(),
    templates=(),
    nodes=("n1",),
    groups=None,
    pods=(),
    replica_sets=(),
    **settings,
):
    """A world of one group of 4-core nodes; ``settings`` turn on what the test needs.

    No API server is there to admit the pods of buffers, so templates are copied as they are.
    """
    found = CapacityChanges(
        pod_templates=tuple(templates),
        provisioning_requests=tuple(requests),
        capacity_buffers=tuple(buffers),
        capacity_quotas=tuple(quotas),
        resource_quotas=tuple(resource_quotas),
    )
    return World(
        groups=groups or [group("g", nodes=nodes)],
        nodes=[node(name) for name in nodes],
        pods=pods,
        replica_sets=replica_sets,
        settings={
            "enable_provisioning_requests": bool(requests),
            "capacity_buffer_controller_enabled": bool(buffers),
            "capacity_buffer_pod_injection_enabled": bool(buffers),
            "capacity_buffer_pod_dry_run_enabled": False,
            "capacity_quotas_enabled": bool(quotas),
            **settings,
        },
        capacity=found,
    )


def conditions(held, name):
    """Return (status, reason) of each condition of a request."""
    found = next(one for one in held.state.capacity.requests if one.metadata.name == name)
    return {one.type: (one.status, one.reason) for one in found.status.conditions or ()}


def provisioned(ago, status="True", reason="CapacityIsFound"):
    return {
        "type": "Provisioned",
        "status": status,
        "reason": reason,
        "message": "m",
        "lastTransitionTime": format_rfc3339(before(START, ago)),
    }


def consumer(name, of, **kwargs):
    note = {"metadata": {"annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": of}}}
    return pod(name, **kwargs, **note)
