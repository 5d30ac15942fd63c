"""The pods that a ProvisioningRequest asks capacity for."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.capacity.provisioning.names import CLASS_ANNOTATION, CONSUMES_ANNOTATION
from kubetide.nodes.facts.capacity import KnownCapacity
from kubetide.nodes.facts.template_pods import MOST_PODS, with_default_requests, with_host_ports
from kubetide.objects.capacity import PodTemplateObject, ProvisioningRequest
from kubetide.objects.kinds import PROVISIONING_REQUESTS
from kubetide.objects.meta import ObjectMeta, OwnerReference
from kubetide.objects.pod import Pod, PodStatus


class NoPods(ValueError):
    """The pods of a request cannot be built: a PodTemplate is missing (upstream's message), or there are none or too many."""


def pods_of(request: ProvisioningRequest, known: KnownCapacity) -> list[list[Pod]]:
    """Return the pods of each pod set, in the order of the request. Raises NoPods."""
    sets = request.spec.pod_sets or ()
    meta = request.metadata
    found = [known.template(meta.namespace, one.pod_template_ref.name) for one in sets]
    missing = [
        one.pod_template_ref.name for one, template in zip(sets, found, strict=True) if template is None
    ]
    if missing:
        raise NoPods(
            f"missing pod templates, {len(sets)} pod templates were referenced, "
            f"{len(missing)} templates were missing: {','.join(missing)}"
        )
    asked = sum(one.count for one in sets)
    if asked < 1:
        # The schema forbids it. Without an answer such a request would be picked again and again, before all others.
        raise NoPods("no pods are asked for: make a request with a pod set whose count is 1 or more")
    if asked > MOST_PODS:
        raise NoPods(
            f"{asked} pods are asked for, and at most {MOST_PODS} can be planned for: make several requests"
        )
    return [
        _copies(request, template, at, one.count)
        for at, (one, template) in enumerate(zip(sets, found, strict=True))
        if template is not None
    ]


def _copies(request: ProvisioningRequest, template: PodTemplateObject, at: int, count: int) -> list[Pod]:
    meta, inner = request.metadata, template.template
    owner = OwnerReference(
        api_version=PROVISIONING_REQUESTS.api_version,
        kind=PROVISIONING_REQUESTS.kind,
        name=meta.name,
        uid=meta.uid,
        controller=True,
    )
    annotations = {
        **(inner.metadata.annotations or {}),
        CONSUMES_ANNOTATION: meta.name,
        CLASS_ANNOTATION: request.spec.provisioning_class_name,
    }
    first = Pod(
        metadata=ObjectMeta(
            namespace=meta.namespace,
            labels=inner.metadata.labels,
            annotations=annotations,
            owner_references=(owner,),
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=with_host_ports(with_default_requests(replace(inner.spec, node_name=""))),
        status=PodStatus(phase="Pending"),
    )
    names = (f"{meta.name}-{at}-{number}" for number in range(count))
    return [
        replace(first, metadata=replace(first.metadata, name=name, uid=f"{meta.namespace}/{name}"))
        for name in names
    ]
