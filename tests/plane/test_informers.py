"""The readers that are measured beside one another read the same pods: ours and client-go's, in both forms."""

from __future__ import annotations

import json
import subprocess

import pytest
from bench.informer import READERS, command_of, pod_json, status_json
from tools.plane.build import find

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import NAMESPACES, PODS
from kubetide.runtime.timing.clock import run_real

pytestmark = pytest.mark.slow

NAMESPACE = "informers"


def test_all_readers_see_all_pods(quiet_plane):
    """Each says how many pods there are, and that they took some time."""
    if find("informer") is None:
        pytest.skip("not built: informer (make control-plane)")

    async def write(clock):
        async with HttpCluster(quiet_plane.connection, clock) as cluster:
            await cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            for index in range(5):
                body = pod_json(index)
                made = await cluster.create(PODS, body, namespace=NAMESPACE)
                status = {"status": status_json(index)}
                name = made.metadata.name
                await cluster.patch(PODS, name, status, namespace=NAMESPACE, subresource="status")
            return len((await cluster.list(PODS)).items)

    count = run_real(write)
    for reader in READERS:
        run = subprocess.run(
            command_of(reader, quiet_plane.kubeconfig),
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        said = json.loads(run.stdout)
        assert said["pods"] == count, reader
        assert said["list_us"] >= 0

    async def clear(clock):
        async with HttpCluster(quiet_plane.connection, clock) as cluster:
            for index in range(5):
                name = pod_json(index)["metadata"]["name"]
                await cluster.delete(PODS, name, namespace=NAMESPACE, grace_period_s=0)

    run_real(clear)
