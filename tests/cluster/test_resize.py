"""A person resizes a pod with kubectl."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.cluster.kubectl.play import minor_of
from tests.cluster.served import TOKEN, served
from tests.cluster.test_kubectl import kubectls

from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.objects.kinds import PODS
from kubetide.runtime.timing.clock import run_real

FIRST_WITH_RESIZE = 32

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [
            {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
        ]
    },
}


async def says(program, config, *words, **env):
    process = await asyncio.create_subprocess_exec(
        program,
        "--kubeconfig",
        str(config),
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(config.parent), **env},
    )
    text, _ = await process.communicate()
    return process.returncode, text.decode()


def patch(**requests):
    return json.dumps({"spec": {"containers": [{"name": "web", "resources": {"requests": requests}}]}})


def test_kubectl_resizes_a_pod(tmp_path):
    """Patches and edits of the subresource reach the pod; refusals are shown; the pod itself refuses them."""
    programs = [program for program in kubectls() if minor_of(program) >= FIRST_WITH_RESIZE]
    if not programs:
        pytest.skip("no kubectl that knows resize")

    async def main(clock):
        async with served(clock) as (cluster, server, connection):
            config = tmp_path / "kubeconfig"
            write_kubeconfig(
                config, kubeconfig(server.url, token=TOKEN, authority=connection.authority.encode())
            )
            for program in programs:
                await cluster.create(PODS, POD, namespace="default")
                resize = ("patch", "pod", "web", "--subresource", "resize", "--patch")
                assert await says(program, config, *resize, patch(cpu="200m")) == (0, "pod/web patched\n")
                code, text = await says(program, config, *resize, patch(cpu="-1"))
                assert (code, "must be greater than or equal to 0" in text) == (1, True), text
                code, text = await says(program, config, "patch", "pod", "web", "--patch", patch(cpu="300m"))
                assert (code, "pod updates may not change fields" in text) == (1, True), text
                code, text = await says(
                    program,
                    config,
                    *("edit", "pod", "web", "--subresource", "resize"),
                    KUBE_EDITOR="sed -i s/200m/400m/",
                )
                assert (code, text) == (0, "pod/web edited\n")
                pod = await cluster.get(PODS, "web", namespace="default")
                assert pod.spec.containers[0].resources.requests == {"cpu": "400m", "memory": "64Mi"}
                assert pod.metadata.generation == 3
                await cluster.delete(PODS, "web", namespace="default", grace_period_s=0)

    run_real(main)
