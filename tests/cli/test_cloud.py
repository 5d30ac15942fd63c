"""``kubetide cloud serve`` as a process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys

import pytest

from kubetide.cli.main import cli
from kubetide.ports.errors import KubetideError

PROVIDER = """
from contextlib import asynccontextmanager
from kubetide.ports.cloud import Cloud, NodeGroup


class Still(Cloud):
    name, gpu_label = "still", ""

    async def refresh(self):
        return [NodeGroup(id="g", max_size=3)]


@asynccontextmanager
async def connect(context):
    assert context.flags.nodes == ("0:3:a", "1:2:b")
    yield Still()
"""


def test_a_port_for_everybody_needs_certificates():
    """Beyond loopback nothing is served in plain text, and nothing is opened before."""
    with pytest.raises(KubetideError, match=r"0\.0\.0\.0:8086 would let anybody scale the groups"):
        cli.main(
            ["cloud", "serve", "aws", "--listen", "0.0.0.0:8086", "--nodes=0:1:a"], standalone_mode=False
        )


@pytest.mark.slow
def test_a_provider_is_served_until_sigterm(tmp_path):
    """The command serves a provider named as module:function, and ends well on SIGTERM."""
    pytest.importorskip("grpc", reason="grpcio is an extra")
    from kubetide.clouds.externalgrpc.client import GrpcClient
    from kubetide.clouds.externalgrpc.cloud import open_cloud
    from kubetide.clouds.externalgrpc.config import GrpcConfig

    (tmp_path / "still.py").write_text(PROVIDER, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "kubetide", "cloud", "serve", "still:connect", "--listen", "127.0.0.1:0"]
    command += ["--nodes=0:3:a", "--nodes", "1:2:b"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        line = process.stdout.readline()
        found = re.fullmatch(r"still: 1 node groups served on (127\.0\.0\.1:\d+)\n", line)
        assert found, line

        async def groups():
            client = GrpcClient(GrpcConfig(found[1]))
            try:
                return await (await open_cloud(client, found[1])).refresh()
            finally:
                await client.close()

        assert [(group.id, group.max_size) for group in asyncio.run(groups())] == [("g", 3)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
