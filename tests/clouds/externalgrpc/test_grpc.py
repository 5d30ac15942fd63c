"""The externalgrpc provider against our own server of the protocol, over sockets."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("grpc", reason="grpcio is an extra")

import grpc
import trustme

from kubetide.clouds.externalgrpc.client import GrpcClient
from kubetide.clouds.externalgrpc.cloud import open_cloud
from kubetide.clouds.externalgrpc.config import Certificates, GrpcConfig
from kubetide.clouds.externalgrpc.joined_nodes import joined_nodes
from kubetide.clouds.externalgrpc.listening import listening
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS, SERVICE
from kubetide.clouds.externalgrpc.readings import node_message, template_message
from kubetide.clouds.externalgrpc.server import serving
from kubetide.clouds.externalgrpc.service import ProviderService
from kubetide.clouds.externalgrpc.statuses import status_of
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.embedded.draws import fixed
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeStatus
from kubetide.ports.cloud import Cloud, GroupOptions, NodeGroup, NodeTemplate
from kubetide.ports.errors import CloudError, CloudUnsupported
from kubetide.runtime.timing.clock import Pace, run_paced
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.units.time import minutes, parse_rfc3339, seconds

pytestmark = pytest.mark.slow
START = parse_rfc3339("2026-03-02T00:00:00Z")


def in_a_world(test, tls=None, client_tls=None):
    """Run a test with the embedded cloud behind a server, a hundred times faster than the clock on the wall."""

    async def main(clock):
        quick = {"boot": fixed(seconds(20)), "ready": fixed(seconds(2)), "shutdown": fixed(seconds(10))}
        groups = [
            GroupSpec(name="empty", instance_type="m5.large", max_size=3, **quick),
            GroupSpec(
                name="kept",
                instance_type="g4dn.xlarge",
                min_size=1,
                max_size=2,
                options=GroupOptions(scale_down_unneeded_time="3m0s", max_node_startup_time="9m0s"),
                devices={"gpu.example.com": 2},
                **quick,
            ),
        ]
        cluster = EmbeddedCluster(Store(), clock)
        cloud = EmbeddedCloud(cluster, clock, seed=1, groups=groups)
        await cloud.start()
        machines = asyncio.create_task(cloud.run())
        async with (
            serving(cloud, "127.0.0.1:0", tls) as port,
            connected(f"127.0.0.1:{port}", client_tls) as client,
            joined_nodes(cluster, clock) as nodes,
        ):
            await test(client, clock, nodes)
        machines.cancel()

    run_paced(main, start=START, pace=Pace(100))


@asynccontextmanager
async def connected(address, tls):
    client = GrpcClient(GrpcConfig(address, seconds(5), tls))
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize(
    "case", [case for case in CASES if "forced" not in case.__name__], ids=lambda case: case.__name__
)
def test_a_cloud_behind_the_protocol_passes_the_battery(case):
    """Groups behind server, protocol and client do what the Cloud port promises."""

    async def test(client, clock, nodes):
        cloud = await open_cloud(client, "test", nodes=nodes, now=clock.now)
        await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(20)))

    in_a_world(test)


def test_what_a_group_says_comes_through():
    """Template, options and GPU label are those of the cloud behind."""

    async def test(client, _clock, _nodes):
        cloud = await open_cloud(client, "test")
        groups = {group.id: group for group in await cloud.refresh()}
        second = groups["kept"]
        assert cloud.gpu_label == "kubetide.dev/accelerator"
        assert second.options.scale_down_unneeded_time == "3m0s"
        assert second.options.scale_down_unready_time == "20m0s"
        assert second.options.max_node_startup_time == "9m0s"
        [devices] = second.template.slices
        assert devices.spec.driver == "gpu.example.com"
        assert len(devices.spec.devices) == 2
        assert groups["empty"].template.slices is None
        assert groups["empty"].options is None
        assert second.template.node.status.capacity["nvidia.com/gpu"] == "1"
        assert second.template.node.metadata.labels["node.kubernetes.io/instance-type"] == "g4dn.xlarge"

    in_a_world(test)


def test_new_nodes_have_the_price_of_groups_like_them():
    """Upstream asks for the price of a template's node, which has its labels and another name; two prices are none."""

    def group(name, disk, price):
        labels = {"disk": disk, "kubernetes.io/hostname": f"template-of-{name}"}
        node = Node(metadata=ObjectMeta(name=name, labels=labels))
        return NodeGroup(id=name, template=NodeTemplate(node=node), price_per_hour=price)

    class Groups(Cloud):
        name, gpu_label = "groups", ""

        async def refresh(self):
            return [
                group("a", "ssd", 2.0),
                group("b", "ssd", 2.0),
                group("c", "hdd", 1.0),
                group("d", "hdd", 3.0),
            ]

    async def price(disk):
        labels = {"disk": disk, "kubernetes.io/hostname": "new-1"}
        request = MESSAGES["PricingNodePriceRequest"](node=node_message("new-1", "", labels, {}))
        request.startTimestamp.seconds = 0
        request.endTimestamp.seconds = 1800
        return (await ProviderService(Groups()).methods()["PricingNodePrice"](request)).price

    assert asyncio.run(price("ssd")) == 1.0
    for disk in ("hdd", "nvme"):
        with pytest.raises(CloudUnsupported):
            asyncio.run(price(disk))


@pytest.mark.parametrize(
    ("refusal", "asked"), [(None, 2), (CloudUnsupported("no"), 1), (CloudError("busy"), 2)]
)
def test_a_group_has_the_price_of_its_new_node(refusal, asked):
    """Asked for the hour to come; a provider that has no prices is asked once, one that fails again."""
    requests = []

    async def call(method, request):
        answer = MESSAGES[METHODS[method][1]]()
        if method == "NodeGroups":
            answer.nodeGroups.add(id="g", maxSize=3)
        elif method == "NodeGroupTemplateNodeInfo":
            node = Node(metadata=ObjectMeta(name="new", labels={"disk": "ssd"}))
            answer = template_message(NodeTemplate(node=node))
        elif method == "PricingNodePrice":
            times = request.startTimestamp.seconds, request.endTimestamp.seconds
            requests.append((request.node.name, dict(request.node.labels), *times))
            if refusal:
                raise refusal
            answer.price = 0.5
        return answer

    async def main():
        cloud = await open_cloud(call, "test", now=lambda: START)
        return [(await cloud.refresh())[0].price_per_hour for _ in range(2)]

    assert asyncio.run(main()) == ([None, None] if refusal else [0.5, 0.5])
    start = START // seconds(1)
    assert requests == [("new", {"disk": "ssd"}, start, start + 3600)] * asked


@pytest.mark.parametrize(
    ("said", "price"), [(math.nan, None), (math.inf, None), (-1.0, None), (0.0, 0.0), (0.5, 0.5)]
)
def test_a_price_that_no_machine_has_is_none(said, price):
    """Such a group would be the best or the worst of all, or keep every group from being chosen."""

    async def call(method, request):
        answer = MESSAGES[METHODS[method][1]]()
        if method == "NodeGroups":
            answer.nodeGroups.add(id="g", maxSize=3)
        elif method == "NodeGroupTemplateNodeInfo":
            answer = template_message(NodeTemplate(node=Node(metadata=ObjectMeta(name="new"))))
        elif method == "PricingNodePrice":
            answer.price = said
        return answer

    async def main():
        return (await (await open_cloud(call, "test", now=lambda: START)).refresh())[0].price_per_hour

    assert asyncio.run(main()) == price


def refreshed(**odd):
    """Return the groups of a provider whose group ``odd`` has these answers, beside a good one."""

    async def call(method, request):
        answer = MESSAGES[METHODS[method][1]]()
        if method == "NodeGroups":
            for name in ("good", "odd"):
                answer.nodeGroups.add(id=name, maxSize=3)
        elif method == "NodeGroupTemplateNodeInfo":
            status = NodeStatus(capacity={"cpu": "4096"}, allocatable={"cpu": "4096"})
            answer = template_message(NodeTemplate(node=Node(metadata=ObjectMeta(name="new"), status=status)))
            if request.id == "odd":
                answer.nodeBytes = answer.nodeBytes.replace(b"4096", odd.get("cpu", b"4096"))
        elif request.DESCRIPTOR.fields_by_name.get("id") and request.id == "odd":
            if method == "NodeGroupTargetSize":
                answer.targetSize = odd.get("size", 0)
            elif method == "NodeGroupGetOptions" and "share" in odd:
                answer.nodeGroupAutoscalingOptions.scaleDownUtilizationThreshold = odd["share"]
        return answer

    async def main():
        return await (await open_cloud(call, "test", now=lambda: START)).refresh()

    good, found = asyncio.run(main())
    assert (good.stale, good.template_error, good.max_size) == ("", "", 3)
    return found


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_a_size_that_no_group_has_is_an_error(size):
    """The loop would plan with each of two thousand million nodes, and never come to an end."""
    assert f"NodeGroupTargetSize: {size} is no size of a group" in refreshed(size=size).stale


def test_a_template_whose_amounts_cannot_be_read_is_none():
    """The error names the field; a tick that compared it with a node failed."""
    odd = refreshed(cpu=b"four")
    assert odd.template is None
    assert 'status.capacity[cpu]: "four" is not a quantity' in odd.template_error


@pytest.mark.parametrize(("share", "kept"), [(math.nan, None), (math.inf, None), (0.5, 0.5)])
def test_a_share_that_is_no_number_keeps_the_flag(share, kept):
    """It compared to nothing, and records could not hold it."""
    assert refreshed(share=share).options.scale_down_utilization_threshold == kept


def test_a_group_without_price_leaves_the_others_theirs():
    """A provider that says Unimplemented for one node, as ours does, is asked for the next one's price all the same."""

    async def call(method, request):
        answer = MESSAGES[METHODS[method][1]]()
        if method == "NodeGroups":
            for name in ("a", "b"):
                answer.nodeGroups.add(id=name, maxSize=3)
        elif method == "NodeGroupTemplateNodeInfo":
            answer = template_message(NodeTemplate(node=Node(metadata=ObjectMeta(name=request.id))))
        elif method == "PricingNodePrice":
            if request.node.name == "a":
                raise CloudUnsupported("no price of node a is known")
            answer.price = 0.5
        return answer

    async def main():
        cloud = await open_cloud(call, "test")
        return [[one.price_per_hour for one in await cloud.refresh()] for _ in range(2)]

    assert asyncio.run(main()) == [[None, 0.5], [None, 0.5]]


@pytest.mark.parametrize(
    ("refusal", "asked"),
    [(CloudError("not up yet"), ["GPULabel", "GPULabel"]), (CloudUnsupported("no"), ["GPULabel"])],
)
def test_what_marks_gpus_is_asked_until_it_is_answered(refusal, asked):
    """A provider that does not answer at the start is asked again at a refresh; one without the method has none."""
    questions = []

    async def call(method, _request):
        answer = MESSAGES[METHODS[method][1]]()
        if "GPU" in method:
            questions.append(method)
            if method == "GPULabel" and questions.count(method) == 1:
                raise refusal
        if method == "GPULabel":
            answer.label = "example.com/gpu"
        elif method == "GetAvailableGPUTypes":
            answer.gpuTypes["t4"].SetInParent()
        return answer

    async def main():
        cloud = await open_cloud(call, "test")
        seen = [(cloud.gpu_label, cloud.gpu_types)]
        for _ in range(2):
            await cloud.refresh()
            seen.append((cloud.gpu_label, cloud.gpu_types))
        return seen

    late = "example.com/gpu" if len(asked) > 1 else ""
    assert asyncio.run(main()) == [("", ("t4",)), (late, ("t4",)), (late, ("t4",))]
    assert sorted(questions) == [*asked, "GetAvailableGPUTypes"]


def test_both_sides_show_certificates():
    """With mTLS a client whose certificate the server trusts is served, and one without is not."""
    authority, other = trustme.CA(), trustme.CA()
    tls = _certificates(authority, "127.0.0.1")

    async def test(client, _clock, _nodes):
        assert await (await open_cloud(client, "test")).refresh()

    in_a_world(test, tls, _certificates(authority, "client"))

    async def refused(client, _clock, _nodes):
        with pytest.raises(CloudError):
            await (await open_cloud(client, "test")).refresh()

    strange = _certificates(other, "client")._replace(authority=tls.authority)
    in_a_world(refused, tls, strange)


def test_what_a_provider_has_not_is_unsupported():
    """A group that does not exist is an error, and atomic increases are not part of the protocol."""

    async def test(client, _clock, _nodes):
        cloud = await open_cloud(client, "test")
        with pytest.raises(CloudUnsupported):
            await cloud.atomic_increase_size("empty", 1)
        with pytest.raises(CloudError, match="no node group nowhere"):
            await cloud.template("nowhere")

    in_a_world(test)


async def _no_protobuf(_request, _context):
    return b"\xff\xff"


@asynccontextmanager
async def answering(handle):
    """Yield a client of a provider that answers every method so."""
    handler = grpc.unary_unary_rpc_method_handler(handle)
    async with (
        listening("127.0.0.1:0", SERVICE, dict.fromkeys(METHODS, handler)) as port,
        connected(f"127.0.0.1:{port}", None) as client,
    ):
        yield client


def test_an_answer_that_is_no_message_is_an_error_of_the_cloud():
    """Bytes that are no protobuf fail the call as a refusal does, also at the start; the loop goes on."""

    async def main():
        async with answering(_no_protobuf) as client:
            cloud = await open_cloud(client, "test")
            with pytest.raises(CloudError, match="Refresh: Internal: the answer is no RefreshResponse"):
                await cloud.refresh()

    asyncio.run(main())


class Unreadable(Cloud):
    """One group that has no template, and options that override a flag."""

    name, gpu_label = "unreadable", ""

    async def refresh(self):
        options = GroupOptions(scale_down_unneeded_time="3m0s")
        return [NodeGroup(id="g", template_error="the type m9 is unknown", options=options)]


async def served(method, **fields):
    return await ProviderService(Unreadable()).methods()[method](MESSAGES[METHODS[method][0]](**fields))


def test_a_group_without_a_template_does_not_stop_upstreams_loop():
    """Upstream leaves out a group whose template is Unimplemented; any other status ends its loop for all groups."""
    with pytest.raises(CloudUnsupported, match="the type m9 is unknown") as refused:
        asyncio.run(served("NodeGroupTemplateNodeInfo", id="g"))
    assert status_of(refused.value) == "UNIMPLEMENTED"


def test_a_request_that_lacks_what_it_is_answered_by_is_refused():
    """Without times a price would be 0, and without defaults an option that the group does not override."""
    node = node_message("new-1", "", {}, {})
    for method, fields, absent in (
        ("PricingNodePrice", {"node": node}, "startTimestamp, endTimestamp"),
        ("NodeGroupGetOptions", {"id": "g"}, "defaults"),
    ):
        with pytest.raises(CloudError, match=f"request fields were nil: {absent}"):
            asyncio.run(served(method, **fields))


def _certificates(authority, name):
    leaf = authority.issue_cert(name)
    return Certificates(
        b"".join(blob.bytes() for blob in leaf.cert_chain_pems),
        leaf.private_key_pem.bytes(),
        authority.cert_pem.bytes(),
    )
