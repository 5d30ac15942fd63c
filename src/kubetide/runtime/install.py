"""Installs the definitions of custom kinds in a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kubetide.cluster import HttpCluster, find_connection
from kubetide.objects.base import Json
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists
from kubetide.runtime.timing.clock import run_real


def install_definitions(
    objects: Sequence[Json], *, kubeconfig: str, context: str, tell: Callable[[str], None]
) -> None:
    """Create or update definitions in the cluster of a kubeconfig. Raises: ApiError."""

    async def main(clock: Clock) -> None:
        connection = find_connection(os.environ, home=Path.home(), kubeconfig=kubeconfig, context=context)
        async with HttpCluster(connection, clock) as cluster:
            for body in objects:
                tell(await put_definition(cluster, body))

    run_real(main)


async def put_definition(cluster: Cluster, body: Json) -> str:
    """Create a definition, or update an existing one's spec; return what was done. Raises: ApiError."""
    name = body["metadata"]["name"]
    try:
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    except AlreadyExists:
        patch: Json = {"metadata": {"annotations": body["metadata"]["annotations"]}, "spec": body["spec"]}
        await cluster.patch(CUSTOM_RESOURCE_DEFINITIONS, name, patch)
        return f"customresourcedefinition.apiextensions.k8s.io/{name} configured"
    return f"customresourcedefinition.apiextensions.k8s.io/{name} created"
