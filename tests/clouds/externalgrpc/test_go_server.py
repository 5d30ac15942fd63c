"""The externalgrpc provider against a server in Go: grpc-go, Go's protobuf, and nodes that Kubernetes' own types encode."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("grpc", reason="grpcio is an extra")
pytest.importorskip("grpc_tools", reason="grpcio-tools is a development dependency")

from importlib.resources import files

import grpc_tools
import trustme
from grpc_tools import protoc
from tests.clouds.externalgrpc.test_grpc import connected
from tools.plane.build import find

from kubetide.clouds.externalgrpc.cloud import open_cloud
from kubetide.clouds.externalgrpc.config import Certificates
from kubetide.clouds.externalgrpc.messages import proto_text
from kubetide.clouds.externalgrpc.server import serving
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.ports.cloud import GroupOptions
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import Pace, run_paced
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.units.time import minutes, parse_rfc3339

pytestmark = pytest.mark.slow
START = parse_rfc3339("2026-03-02T00:00:00Z")


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory):
    """The protocol as protoc describes it, with what it imports."""
    folder = tmp_path_factory.mktemp("protocol")
    (folder / "protocol.proto").write_text(proto_text(), encoding="utf-8")
    out = folder / "set"
    shipped = files(grpc_tools).joinpath("_proto")
    arguments = [f"-I{folder}", f"-I{shipped}", "--include_imports", f"--descriptor_set_out={out}"]
    assert protoc.main(["", *arguments, "protocol.proto"]) == 0
    return out


def program_or_skip():
    program = find("cloud")
    if program is None:
        missing = pytest.fail if os.environ.get("KUBETIDE_REQUIRE_PLANE") else pytest.skip
        missing("not built: cloud (python -m tools.plane build clients)")
    return program


@contextmanager
def go_server(*arguments):
    """Run the server as long as the context is open, and yield its address."""
    program = program_or_skip()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([program, *map(str, arguments)], text=True, **pipes) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10)


def in_go(test, *arguments, tls=None):
    """Run a test with a server of its own, while our clock goes ten times as fast as that on the wall."""

    async def main(clock):
        async with connected(address, tls) as client:
            await test(client, clock)

    with ExitStack() as stack:
        address = stack.enter_context(go_server(*arguments))
        run_paced(main, start=START, pace=Pace(10))


@pytest.mark.parametrize(
    "case", [case for case in CASES if "forced" not in case.__name__], ids=lambda case: case.__name__
)
def test_a_cloud_in_go_passes_the_battery(case, descriptors):
    """Groups that a Go program has do what the Cloud port promises."""

    async def test(client, clock):
        cloud = await open_cloud(client, "test")
        await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(5)))

    in_go(test, descriptors)


def test_what_a_go_server_says_comes_through(descriptors):
    """Template, options and GPUs are read as Go's libraries write them."""

    async def test(client, _clock):
        cloud = await open_cloud(client, "test")
        groups = {group.id: group for group in await cloud.refresh()}
        node = groups["kept"].template.node
        assert node.status.capacity == {"cpu": "1930m", "memory": "7Gi", "pods": "110"}
        assert [(one.key, one.value, one.effect) for one in node.spec.taints] == [
            ("made-up", "yes", "NoSchedule")
        ]
        [devices] = groups["kept"].template.slices
        assert (devices.spec.driver, devices.spec.node_name) == ("made-up.example.com", "template-kept")
        assert [one.name for one in devices.spec.devices] == ["device-0"]
        assert groups["kept"].options.scale_down_unneeded_time == "3m0s"
        assert groups["kept"].options.scale_down_utilization_threshold == 0.25
        assert groups["kept"].options.max_node_startup_time == "10m0s"
        assert groups["kept"].options.allow_non_atomic_scale_up_to_max
        assert groups["empty"].options is None
        assert (cloud.gpu_label, cloud.gpu_types) == ("example.com/gpu", ("large", "small"))
        assert [one.price_per_hour for one in groups.values()] == [None, None], "it prices nothing"

    in_go(test, descriptors)


def test_a_go_client_asks_what_we_serve(descriptors):
    """Our server answers Go's gRPC: groups, sizes, a node that Go can hold, options over its defaults, and refusals."""
    asked = [
        ("Refresh", {}),
        ("NodeGroups", {}),
        ("NodeGroupTargetSize", {"id": "kept"}),
        ("NodeGroupGetOptions", {"id": "kept", "defaults": {"maxNodeStartupDuration": "900s"}}),
        ("NodeGroupTemplateNodeInfo", {"id": "kept"}),
        ("NodeGroupIncreaseSize", {"id": "empty", "delta": 9}),
    ]

    async def main(clock):
        options = GroupOptions(scale_down_unneeded_time="3m0s")
        groups = [
            GroupSpec(name="empty", instance_type="m5.large", max_size=3),
            GroupSpec(name="kept", instance_type="m5.large", min_size=1, max_size=2, options=options),
        ]
        cloud = EmbeddedCloud(EmbeddedCluster(Store(), clock), clock, seed=1, groups=groups)
        await cloud.start()
        async with serving(cloud, "127.0.0.1:0", None) as port:
            return [await ask(f"127.0.0.1:{port}", *one) for one in asked]

    async def ask(address, method, request):
        command = [program_or_skip(), str(descriptors), address, method, json.dumps(request)]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, error = await process.communicate()
        return json.loads(said) if process.returncode == 0 else error.decode()

    refreshed, groups, size, options, template, refused = run_paced(main, start=START, pace=Pace(1))
    assert refreshed == {}
    assert [(one["id"], one["maxSize"]) for one in groups["nodeGroups"]] == [("empty", 3), ("kept", 2)]
    assert size == {"targetSize": 1}
    reported = options["nodeGroupAutoscalingOptions"]
    assert (reported["scaleDownUnneededDuration"], reported["maxNodeStartupDuration"]) == ("180s", "900s")
    assert b"m5.large" in base64.b64decode(template["nodeBytes"])
    assert "rpc error" in refused


def test_both_sides_show_certificates(descriptors, tmp_path):
    """Go's TLS takes our certificate where its authority has signed it, and refuses us where it has not."""
    authority, other = trustme.CA(), trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    leaf.cert_chain_pems[0].write_to_path(tmp_path / "crt")
    leaf.private_key_pem.write_to_path(tmp_path / "key")
    authority.cert_pem.write_to_path(tmp_path / "ca")
    paths = [tmp_path / name for name in ("crt", "key", "ca")]

    async def served(client, _clock):
        assert [group.id for group in await (await open_cloud(client, "test")).refresh()] == ["empty", "kept"]

    async def refused(client, _clock):
        with pytest.raises(CloudError):
            await (await open_cloud(client, "test")).refresh()

    in_go(served, descriptors, *paths, tls=certificates(authority, authority))
    in_go(refused, descriptors, *paths, tls=certificates(other, authority))


def certificates(issuer, authority):
    leaf = issuer.issue_cert("client")
    return Certificates(
        b"".join(blob.bytes() for blob in leaf.cert_chain_pems),
        leaf.private_key_pem.bytes(),
        authority.cert_pem.bytes(),
    )
