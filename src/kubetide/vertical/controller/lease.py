"""The lease that shows that the admission controller is running."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from kubetide.acting import update_object
from kubetide.objects.base import Json
from kubetide.objects.kinds import LEASES
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, NotFound
from kubetide.units.time import (
    Duration,
    Instant,
    TimeFormatError,
    format_rfc3339_micro,
    parse_rfc3339,
    to_seconds,
)

PROGRAM: Final = "vpa-admission-controller"

_DEFAULT = "kube-system"


def lease_namespace(flag: str) -> str:
    """Return the lease's namespace: the flag, else ``$NAMESPACE``, else kube-system."""
    return flag or own_namespace()


def own_namespace() -> str:
    """Return the namespace of the process: ``$NAMESPACE``, else kube-system."""
    return os.environ.get("NAMESPACE") or _DEFAULT


def own_name() -> str:
    """Return the name of the pod or machine, ``$HOSTNAME``; that of the program where there is none."""
    return os.environ.get("HOSTNAME") or PROGRAM


async def is_renewed(cluster: Cluster, name: str, namespace: str, *, after: Instant) -> bool:
    """Return whether the lease was renewed since then; it is made without a renewal."""
    try:
        lease = await cluster.get(LEASES, name, namespace=namespace)
        return parse_rfc3339(lease.spec.renew_time or "") > after
    except (NotFound, TimeFormatError):
        return False


async def renew_lease(
    cluster: Cluster, name: str, namespace: str, *, identity: str, every: Duration, now: Instant
) -> None:
    """Renew the lease; create a missing one, as upstream without a renewal time.

    Args:
        every: Time between two renewals, of which a new lease holds the whole seconds.
    """
    spec: Json = {"holderIdentity": identity}
    renewed = {**spec, "renewTime": format_rfc3339_micro(now)}

    def change(lease: Json) -> Json:
        return {**lease, "spec": {**(lease.get("spec") or {}), **renewed}}

    try:
        await update_object(cluster, LEASES, name, change, namespace=namespace)
    except NotFound:
        body: Json = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": {"name": name}}
        # The API server takes no lease of 0 seconds.
        lasting = {"leaseDurationSeconds": max(int(to_seconds(every)), 1)}
        # One that starts at the same moment may have made it: then it is renewed the next time.
        with suppress(AlreadyExists):
            await cluster.create(LEASES, {**body, "spec": spec | lasting}, namespace=namespace)
