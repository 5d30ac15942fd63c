"""Devices of nodes, claims to them, and pods that use the claims."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from tests.nodes.frozen import group, pod, template
from tests.objects import samples

from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.objects.resource import DeviceClass, ResourceClaim, ResourceSlice

CLASS = msgspec.convert(samples.device_class(), DeviceClass)


def _slice(name, node_name, numbers, *, of, **spec):
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": of}
    found = [{"name": f"gpu-{number}"} for number in numbers]
    body = samples.resource_slice(name, nodeName=node_name, pool=pool, devices=found, **spec)
    return msgspec.convert(body, ResourceSlice)


def slice_of(name, count, **spec):
    """Return the slice that a driver publishes for a node with that many devices."""
    return _slice(f"{name}-gpu", name, range(count), of=1, **spec)


def claim(name, *, count=1, device="", on="", user=""):
    """Return a claim; with ``device`` it is allocated, on a node."""
    body = samples.resource_claim(
        name,
        {
            "name": "one",
            "exactly": {"deviceClassName": "gpu.test", "allocationMode": "ExactCount", "count": count},
        },
    )
    body["metadata"] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if device:
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
        result = {"request": "one", "driver": "gpu.test", "pool": on, "device": device}
        body["status"] = {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [here]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"}],
        }
    return msgspec.convert(body, ResourceClaim)


def using(name, *, of=None, **fields):
    """Return a pod that uses a claim of the same name."""
    spec = {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": of or name}]}}
    return pod(name, **spec, **fields)


def devices(*, slices=(), claims=(), classes=(CLASS,)):
    return DeviceChanges(slices=tuple(slices), claims=tuple(claims), classes=tuple(classes))


def with_devices(name, count, **fields):
    """Return a group whose new nodes bring devices, as its cloud says."""
    return group(name, made=replace(template(), slices=(slice_of("template", count),)), **fields)


def piece_of(name, number, *, of):
    """Return one of that many slices of a node's pool, with one device."""
    return _slice(f"{name}-gpu-{number}", name, [number], of=of)
