"""The lease that shows that the admission controller is running."""

from __future__ import annotations

import os

from kubetide.acting import update_object
from kubetide.objects.base import Json
from kubetide.objects.kinds import LEASES
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.units.time import Instant, format_rfc3339_micro

_DEFAULT = "kube-system"


def lease_namespace(flag: str) -> str:
    """Return the lease's namespace: the flag, else ``$NAMESPACE``, else kube-system."""
    return flag or own_namespace()


def own_namespace() -> str:
    """Return the namespace of the process: ``$NAMESPACE``, else kube-system."""
    return os.environ.get("NAMESPACE") or _DEFAULT


async def renew_lease(cluster: Cluster, name: str, namespace: str, identity: str, now: Instant) -> None:
    """Renew the lease; create a missing one, as upstream without a renewal time."""
    spec: Json = {"holderIdentity": identity}
    renewed = {**spec, "renewTime": format_rfc3339_micro(now)}

    def change(lease: Json) -> Json:
        return {**lease, "spec": {**(lease.get("spec") or {}), **renewed}}

    try:
        await update_object(cluster, LEASES, name, change, namespace=namespace)
    except NotFound:
        body: Json = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": {"name": name}}
        await cluster.create(LEASES, {**body, "spec": spec}, namespace=namespace)
