"""The scheduler's part in claims for devices: it writes who has been given which, before the pod is bound.

Source: kube-scheduler v1.36 DynamicResources, PreBind.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from kubetide.embedded.controllers.scheduling.device_cache import DeviceCache
from kubetide.embedded.controllers.workloads.templates import owner_reference, to_json
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS, RESOURCE_CLAIMS
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceClaim
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict
from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.devices.allocation import PlannedClaim, plan_claims
from kubetide.scheduling.devices.ledger import EXTENDED_CLAIM
from kubetide.units.seeds import uuid_of

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""Finalizer of a claim that has devices; the controller of claims takes it off."""


class DeviceBinder:
    """Allocates devices to claims in the cluster."""

    def __init__(self, cluster: Cluster, devices: DeviceCache) -> None:
        self._cluster = cluster
        self._devices = devices

    def plan(
        self, snapshot: Snapshot, pod_class: PodClass, key: Key, uid: str, node: Node
    ) -> list[PlannedClaim]:
        """Return the pod's claims with what each is to be given, before the pod is put on the node.

        Raises: Conflict when the devices are gone since the node was chosen.
        """
        if pod_class.devices is None or snapshot.devices is None or not snapshot.asks_for_devices(pod_class):
            return []
        planned = plan_claims(
            snapshot.devices, pod_class.devices, key, node, partial(uuid_of, 0, "share", uid)
        )
        if planned is None:
            raise Conflict(f"pod {'/'.join(key)}: the devices on node {node.metadata.name} are gone")
        return planned

    async def write(self, pod: Pod, planned: list[PlannedClaim]) -> None:
        """Write allocations and reservations, and make the claim of extended resources. Raises ApiError."""
        for one in planned:
            claim = await self._made(pod, one) if one.is_extended else self._newest(one)
            self._devices.note(await self._reserved(pod, claim, one))

    def _newest(self, planned: PlannedClaim) -> ResourceClaim:
        return self._devices.objects[RESOURCE_CLAIMS].get(planned.key, planned.claim)

    async def _made(self, pod: Pod, planned: PlannedClaim) -> ResourceClaim:
        """Make the claim that stands for extended resources, and write its name into the pod's status."""
        if planned.allocation is None:
            return planned.claim
        meta = pod.metadata
        body: Json = {
            "metadata": {
                "generateName": f"{meta.name}-extended-resources-",
                "annotations": {EXTENDED_CLAIM: "true"},
                "ownerReferences": [to_json(owner_reference(PODS, meta))],
            },
            "spec": to_json(planned.claim.spec),
        }
        claim = await self._cluster.create(RESOURCE_CLAIMS, body, namespace=meta.namespace)
        status = {"resourceClaimName": claim.metadata.name, "requestMappings": list(_mappings(pod, claim))}
        patch: Json = {"metadata": {"uid": meta.uid}, "status": {"extendedResourceClaimStatus": status}}
        await self._cluster.patch(PODS, meta.name, patch, namespace=meta.namespace, subresource="status")
        return claim

    async def _reserved(self, pod: Pod, claim: ResourceClaim, planned: PlannedClaim) -> ResourceClaim:
        meta = claim.metadata
        if planned.allocation is not None and DELETE_PROTECTION not in (meta.finalizers or ()):
            guard: Json = {
                "metadata": {
                    "resourceVersion": meta.resource_version,
                    "finalizers": [*(meta.finalizers or ()), DELETE_PROTECTION],
                }
            }
            claim = await self._cluster.patch(RESOURCE_CLAIMS, meta.name, guard, namespace=meta.namespace)
        users = [to_json(one) for one in claim.status.reserved_for or ()]
        if any(one.get("uid") == pod.metadata.uid for one in users) and planned.allocation is None:
            return claim
        users.append({"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid})
        status: Json = {"reservedFor": users}
        if planned.allocation is not None:
            status["allocation"] = msgspec.to_builtins(planned.allocation)
        patch: Json = {
            "metadata": {"uid": meta.uid, "resourceVersion": claim.metadata.resource_version},
            "status": status,
        }
        return await self._cluster.patch(
            RESOURCE_CLAIMS, meta.name, patch, namespace=meta.namespace, subresource="status"
        )


def _mappings(pod: Pod, claim: ResourceClaim) -> Iterator[Json]:
    """Yield which container's resource each request stands for, by the numbers in the request's name."""
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    for request in claim.spec.devices.requests or ():
        _, at, _, place = request.name.split("-")
        container = containers[int(at)]
        resource = sorted(container.resources.requests or {})[int(place)]
        yield {"containerName": container.name, "resourceName": resource, "requestName": request.name}
