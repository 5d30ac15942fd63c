"""What a run ignores in its manifests: shown before it begins and in its summary.

A run that places pods without a constraint, or has an HPA that cannot scale, still says something
about the rest; so these are notices and not errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import (
    CLAIMS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    HPAS,
    JOBS,
    MUTATING_WEBHOOKS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VALIDATING_WEBHOOKS,
    Kind,
)
from kubetide.objects.scaled_objects import SERVERS
from kubetide.simulate.scenarios.build import Manifests

_DEVICE_REFERENCES: dict[Kind[Any], str] = {
    RESOURCE_CLAIMS: "resourceClaimName",
    RESOURCE_CLAIM_TEMPLATES: "resourceClaimTemplateName",
}
"""How a pod names claims for devices, by kind."""
_SCALABLE = (DEPLOYMENTS.kind, REPLICA_SETS.kind, STATEFUL_SETS.kind)
_WITH_TEMPLATE = (*_SCALABLE, DAEMON_SETS.kind, JOBS.kind)

_PODS_OF = {**dict.fromkeys(_SCALABLE, "replicas"), JOBS.kind: "parallelism"}
"""The field that says how many pods an object has, by kind."""

_MOST_PODS = 1_000_000
"""Of one object in a run: more fill the memory of most machines before the first decision."""


def notices_of(
    manifests: Manifests, skipped: Sequence[str] = (), *, calls_webhooks: bool = False
) -> tuple[str, ...]:
    """Return a sentence for each part of the objects that a run ignores, in their order.

    Args:
        manifests: The objects of the run.
        skipped: The kind of each object that was passed over.
        calls_webhooks: Whether the run can call admission webhooks.
    """
    found = (
        *_of_claims(manifests),
        *_of_device_claims(manifests),
        *_of_hpas(manifests),
        *_of_custom_kinds(manifests),
        *_of_quotas(manifests),
        *_of_skipped(skipped),
    )
    if not calls_webhooks:
        found = (*found, *_of_webhooks(manifests))
    return tuple(dict.fromkeys(found))


def _of_custom_kinds(manifests: Manifests) -> Iterator[str]:
    for kind, number in Counter(kind.kind for kind, _ in manifests if kind.model is dict).items():
        yield (
            f"{kind}: {number} of a custom kind; nothing here acts on it but a controller of yours, beside "
            "kubetide up --serve"
        )


def _of_quotas(manifests: Manifests) -> Iterator[str]:
    for kind, json in manifests:
        if kind is RESOURCE_QUOTAS:
            yield f"ResourceQuota {_name(json)}: a run creates pods above it; only CapacityBuffers keep to it, by its status"


def _of_skipped(skipped: Sequence[str]) -> Iterator[str]:
    for kind, number in Counter(skipped).items():
        yield f"{kind}: {number} skipped; nothing that scales reads the kind"


def _of_webhooks(manifests: Manifests) -> Iterator[str]:
    for kind, json in manifests:
        if kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            yield (
                f"{kind.kind} {json['metadata'].get('name')}: left out; webhooks answer in real time, so only "
                "`kubetide up` calls them"
            )


def of_servers(manifests: Manifests) -> Iterator[str]:
    """Yield a sentence for each ScaledObject with triggers that ask a server: a run in virtual time connects to none."""
    for kind, json in manifests:
        if kind is SCALED_OBJECTS:
            triggers = (json.get("spec") or {}).get("triggers") or ()
            types = {str(one.get("type")) for one in triggers}
            if asked := sorted(types & set(SERVERS)):
                yield (
                    f"ScaledObject {_name(json)}: its triggers of type {' and '.join(asked)} are not followed: a run in virtual "
                    "time has no servers; `kubetide up` asks them"
                )


def _pod_specs(manifests: Manifests) -> Iterator[tuple[Kind[Any], Json, Json]]:
    """Yield each object that is or makes pods, with their spec."""
    for kind, json in manifests:
        if kind.kind in _WITH_TEMPLATE:
            template = (json.get("spec") or {}).get("template") or {}
        elif kind.kind == CRON_JOBS.kind:
            job = (json.get("spec") or {}).get("jobTemplate") or {}
            template = (job.get("spec") or {}).get("template") or {}
        elif kind.kind == PODS.kind:
            template = json
        else:
            continue
        yield kind, json, template.get("spec") or {}


def _of_claims(manifests: Manifests) -> Iterator[str]:
    """Claim that nothing among the objects makes or return a volume to: pods would wait for them for good."""
    there = {_name(json) for kind, json in manifests if kind is CLAIMS}
    classes = {json["metadata"].get("name") for kind, json in manifests if kind is STORAGE_CLASSES}
    volumes = any(kind is PERSISTENT_VOLUMES for kind, _ in manifests)
    for kind, json, spec in _pod_specs(manifests):
        made = {one["metadata"].get("name") for one in _claim_templates(kind, json)}
        for volume in spec.get("volumes") or ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if claim and volume.get("name") not in made and f"{_namespace(json)}/{claim}" not in there:
                yield f"{kind.kind} {_name(json)}: its pods wait for the claim {claim}, which is not among the objects"
    for kind, json in manifests:
        asked = [json] if kind is CLAIMS else _claim_templates(kind, json)
        for one in asked:
            name = (one.get("spec") or {}).get("storageClassName")
            if not volumes and not classes & ({name} if name else classes):
                found = f"StorageClass {name}" if name else "StorageClass"
                yield f"{kind.kind} {_name(json)}: its claims wait, as there is no {found} and no volume"


def _of_device_claims(manifests: Manifests) -> Iterator[str]:
    """Claim for devices, their templates and classes that are not among the objects: pods would wait for good."""
    there = {
        kind.kind: {_name(json) for one, json in manifests if one is kind} for kind in _DEVICE_REFERENCES
    }
    classes = {json["metadata"].get("name") for kind, json in manifests if kind is DEVICE_CLASSES}
    for kind, json, spec in _pod_specs(manifests):
        for claim in spec.get("resourceClaims") or ():
            for what, field in _DEVICE_REFERENCES.items():
                name = claim.get(field)
                if name and f"{_namespace(json)}/{name}" not in there[what.kind]:
                    said = f"its pods wait for the {what.kind} {name}, which is not among the objects"
                    yield f"{kind.kind} {_name(json)}: {said}"
    for kind, json in manifests:
        if kind in _DEVICE_REFERENCES:
            for name in _classes_of(json):
                if name not in classes:
                    yield f"{kind.kind} {_name(json)}: its claims wait, as there is no DeviceClass {name}"


def _classes_of(json: Json) -> Iterator[str]:
    """Yield the classes that a claim or a template of claims names."""
    spec = json.get("spec") or {}
    for request in ((spec.get("spec") or spec).get("devices") or {}).get("requests") or ():
        for one in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            if one.get("deviceClassName"):
                yield one["deviceClassName"]


def _claim_templates(kind: Kind[Any], json: Json) -> list[Json]:
    if kind is not STATEFUL_SETS:
        return []
    return (json.get("spec") or {}).get("volumeClaimTemplates") or []


def _of_hpas(manifests: Manifests) -> Iterator[str]:
    scaled: dict[tuple[str, str, str], str] = {}
    for kind, json in manifests:
        if kind.kind != HPAS.kind:
            continue
        hpa = msgspec.convert({"spec": json.get("spec") or {}}, HorizontalPodAutoscaler)
        name = _name(json)
        ref = hpa.spec.scale_target_ref
        target = (_namespace(json), ref.kind, ref.name)
        other = scaled.setdefault(target, name)
        if other != name:
            yield (
                f"HorizontalPodAutoscaler {name}: {ref.kind} {target[0]}/{ref.name} is scaled by {other} as well, so "
                "neither acts (AmbiguousSelector); keep one of them"
            )


def problems_in(manifests: Manifests) -> list[str]:
    """Return a sentence for each object that stands twice, each HPA without its target, and each that asks for too many pods."""
    return [
        *(f"{name} stands twice; give each object its own name" for name in duplicates_in(manifests)),
        *(f"HorizontalPodAutoscaler {name}: {problem}" for name, problem in targets_missing(manifests)),
        *_too_many_pods(manifests),
    ]


def _too_many_pods(manifests: Manifests) -> Iterator[str]:
    for kind, json in manifests:
        field = _PODS_OF.get(kind.kind)
        pods = (json.get("spec") or {}).get(field) if field else None
        if isinstance(pods, int) and pods > _MOST_PODS:
            yield f"{kind.kind} {_name(json)}: {field}: {pods} pods, and one object may have {_MOST_PODS} in a run; lower it"


def duplicates_in(manifests: Manifests) -> Iterator[str]:
    """Yield each object that the manifests contain more than once."""
    seen: set[tuple[str, str]] = set()
    for kind, json in manifests:
        key = (kind.kind, _name(json) if kind.namespaced else str(json["metadata"].get("name")))
        if json["metadata"].get("name") and key in seen:
            yield " ".join(key)
        seen.add(key)


def targets_missing(manifests: Manifests) -> Iterator[tuple[str, str]]:
    """Yield each HPA whose target is not among the objects, with the warning about it."""
    there = {
        (_group(kind.api_version), kind.kind, _namespace(json), json["metadata"].get("name"))
        for kind, json in manifests
        if "scale" in kind.subresources
    }
    for kind, json in manifests:
        if kind.kind != HPAS.kind:
            continue
        ref: dict[str, Any] = (json.get("spec") or {}).get("scaleTargetRef") or {}
        group = _group(str(ref.get("apiVersion") or ""))
        referenced = (group, ref.get("kind"), _namespace(json), ref.get("name"))
        if referenced not in there:
            known = ", ".join(sorted(f"{one[1]} {one[2]}/{one[3]}" for one in there)) or "none"
            missing = f"{ref.get('apiVersion')} {ref.get('kind')} {referenced[2]}/{ref.get('name')}"
            problem = f"no {missing} in manifests, so it would scale nothing; there are: {known}"
            yield _name(json), f"spec.scaleTargetRef: {problem}"


def _group(api_version: str) -> str:
    """Return the API group: the HPA controller finds a target by group and kind, in whatever version it is served."""
    return api_version.rpartition("/")[0]


def _namespace(json: Json) -> str:
    return str(json["metadata"].get("namespace") or "default")


def _name(json: Json) -> str:
    return f"{_namespace(json)}/{json['metadata'].get('name')}"
