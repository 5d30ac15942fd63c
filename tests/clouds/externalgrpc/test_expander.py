"""The expander protocol over real sockets: the node loop asks, our chain answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("grpc", reason="grpcio is an extra")

import grpc
import trustme

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.externalgrpc.expander.client import GrpcExpander
from kubetide.clouds.externalgrpc.expander.messages import (
    MESSAGES,
    METHOD,
    METHODS,
    SERVICE,
    node_of,
    pod_of,
)
from kubetide.clouds.externalgrpc.expander.server import serving
from kubetide.clouds.externalgrpc.listening import listening
from kubetide.clouds.externalgrpc.messages import encode
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.explain.records import Record
from kubetide.nodes.controller import NodesController
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeStatus
from kubetide.objects.pod import Pod
from kubetide.ports.errors import CloudError
from kubetide.ports.expander import Offer
from kubetide.runtime.expanders import certificate_of, chosen_by
from kubetide.runtime.timing.clock import Pace, run_paced
from kubetide.units.time import parse_rfc3339
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T00:00:00Z")


def node(name, cpu, memory=8 << 30):
    return Node(
        metadata=ObjectMeta(name=name),
        status=NodeStatus(capacity={"cpu": cpu, "memory": memory, "pods": 110}),
    )


def pod(name):
    return Pod(metadata=ObjectMeta(namespace="default", name=name, uid=name))


OFFERS = [
    Offer("a", 2, (pod("p"), pod("q"))),
    Offer("b", 1, (pod("p"), pod("q"))),
    Offer("c", 1, (pod("p"),)),
]
NODES = {"a": node("a", 2), "b": node("b", 4), "c": node("c", 64)}


def asked(choose, offers=OFFERS, *, authority=None, certificate=None, address="127.0.0.1:0"):
    async def main():
        async with serving(choose, address, certificate=certificate) as port:
            client = GrpcExpander(f"localhost:{port}", authority or "")
            try:
                return await client.best_options(offers, NODES)
            finally:
                await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("chain", "best"),
    [
        ("most-pods", ("a", "b")),
        ("least-nodes", ("b", "c")),
        ("most-pods,least-nodes", ("b",)),
        ("random", ("a", "b", "c")),
    ],
)
def test_our_chain_answers_as_an_expander(chain, best):
    """Options come through with their pods and nodes, and all that are equally best come back."""
    assert asked(chosen_by(chain)) == best


def test_pods_and_nodes_come_through_whole():
    """The other side reads the objects as they were sent."""
    seen = []

    def choose(offers, nodes):
        seen.append((list(offers), dict(nodes)))
        return ["c"]

    assert asked(choose) == ("c",)
    ((offers, nodes),) = seen
    assert [(one.group, one.nodes, [p.metadata.name for p in one.pods]) for one in offers] == [
        ("a", 2, ["p", "q"]),
        ("b", 1, ["p", "q"]),
        ("c", 1, ["p"]),
    ]
    assert {name: int(one.status.capacity["cpu"]) for name, one in nodes.items()} == {"a": 2, "b": 4, "c": 64}


def answered_by(handler):
    """Return what our client makes of a server with this handler."""

    async def main():
        async with listening("127.0.0.1:0", SERVICE, {METHOD: handler}) as port:
            client = GrpcExpander(f"localhost:{port}")
            try:
                return await client.best_options(OFFERS, NODES)
            finally:
                await client.close()

    return asyncio.run(main())


def test_a_question_with_many_pods_is_answered():
    """Requests and answers may be larger than the 4 MiB that gRPC allows by itself."""
    large = Pod(metadata=ObjectMeta(namespace="default", name="p", annotations={"note": "x" * 3000}))
    offers = [Offer(group, 1, (large,) * 1000) for group in ("a", "b", "c")]
    assert asked(chosen_by("random"), offers) == ("a", "b", "c")

    async def long_answer(_request, _context):
        return MESSAGES["BestOptionsResponse"](options=[{"nodeGroupId": "a", "debug": "x" * (5 << 20)}])

    handler = grpc.unary_unary_rpc_method_handler(long_answer, response_serializer=encode)
    assert answered_by(handler) == ("a",)


def test_what_the_server_answers_has_no_pods():
    """An older client takes answers of 4 MiB at most, and goes by the ids alone."""
    request = MESSAGES["BestOptionsRequest"](options=[{"nodeGroupId": "a", "podBytes": [b""]}])

    async def main():
        async with (
            serving(lambda *_: ["a"], "127.0.0.1:0") as port,
            grpc.aio.insecure_channel(f"localhost:{port}") as channel,
        ):
            call = channel.unary_unary(
                f"/{SERVICE}/{METHOD}",
                request_serializer=encode,
                response_deserializer=MESSAGES["BestOptionsResponse"].FromString,
            )
            return await call(request)

    [option] = asyncio.run(main()).options
    assert (option.nodeGroupId, list(option.podBytes)) == ("a", [])


def test_an_authority_is_checked(tmp_path):
    """With a certificate the expander is reached by those who know its authority."""
    authority = trustme.CA()
    given = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    pair = (given.cert_chain_pems[0].bytes(), given.private_key_pem.bytes())
    assert asked(chosen_by("most-pods"), authority=str(tmp_path / "ca.pem"), certificate=pair) == ("a", "b")
    stranger = trustme.CA()
    stranger.cert_pem.write_to_path(tmp_path / "other.pem")
    with pytest.raises(CloudError, match="does not answer"):
        asked(chosen_by("most-pods"), authority=str(tmp_path / "other.pem"), certificate=pair)


def test_an_answer_that_is_no_message_is_none():
    """Bytes that are no protobuf are as good as silence: all options stay, and the loop goes on."""

    async def no_protobuf(_request, _context):
        return b"\xff\xff"

    with pytest.raises(CloudError, match="is no BestOptionsResponse in protobuf"):
        answered_by(grpc.unary_unary_rpc_method_handler(no_protobuf))


def test_bad_input_is_named():
    """The errors name an expander that lacks data in the protocol, a missing certificate, and bytes that are no pod."""
    with pytest.raises(CloudConfigError, match="price needs more than the protocol tells"):
        chosen_by("price")
    with pytest.raises(CloudConfigError, match="give a PEM file"):
        GrpcExpander("localhost:1", "/nowhere/ca.pem")
    for read in (pod_of, node_of):
        with pytest.raises(CloudError):
            read(b"\xff\xff")
    with pytest.raises(ValueError, match="grpc-expander-url=HOST:PORT"):
        Settings(expander="grpc")


@pytest.mark.parametrize(
    "held", ["", "junk", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_file_without_a_certificate_is_refused_at_the_start(tmp_path, held):
    """Of client and server: gRPC says at the first call that it cannot connect, or takes the system's authorities."""
    file = tmp_path / "tls.pem"
    file.write_text(held)
    with pytest.raises(
        CloudConfigError, match=f"--grpc-expander-cert={file}: cannot be read: .*; give a PEM"
    ):
        GrpcExpander("localhost:1", str(file))
    with pytest.raises(CloudConfigError, match=f"--cert={file} --key={file}: no certificate with its key: "):
        certificate_of(file, file)


def test_a_served_chain_and_address_must_be_complete():
    """A misspelt expander and an address without a port are errors in a sentence; the port was 443 otherwise."""
    with pytest.raises(
        CloudConfigError, match="expander serve least: Expander least not supported; there are"
    ):
        chosen_by("least")
    with pytest.raises(CloudConfigError, match=r"cannot listen on 127.0.0.1: it has no port; give HOST:PORT"):
        asked(chosen_by("random"), address="127.0.0.1")


def test_the_protocol_is_upstreams():
    """Service, method, and the numbers of the fields that upstream still uses."""
    assert SERVICE == "grpcplugin.Expander"
    assert METHODS == {"BestOptions": ("BestOptionsRequest", "BestOptionsResponse")}
    numbers = {
        name: {field.name: field.number for field in one.DESCRIPTOR.fields} for name, one in MESSAGES.items()
    }
    assert numbers == {
        "BestOptionsRequest": {"options": 1, "nodeBytesMap": 3},
        "BestOptionsResponse": {"options": 1},
        "Option": {"nodeGroupId": 1, "nodeCount": 2, "debug": 3, "podBytes": 5},
    }


class _CodeRecorder:
    """A recorder that stores the codes of the reasons, and the last reason of each."""

    def __init__(self):
        self.codes, self.said = [], {}

    def wants_full(self, loop):
        del loop
        return False

    def write(self, record: Record):
        self.codes += [one.code for one in record.reasons]
        self.said |= {one.code: one for one in record.reasons}


def one_tick(address_of, expander="grpc", full=()):
    """Run a tick of the node loop for one waiting pod; return the targets and what was said. Groups ``full`` cannot grow."""
    most = {"one": 3, "two": 3, **dict.fromkeys(full, 0)}

    async def main(clock):
        store = Store()
        cluster = EmbeddedCluster(store, clock)
        groups = [
            GroupSpec(name=name, instance_type="m5.large", max_size=size) for name, size in most.items()
        ]
        cloud = EmbeddedCloud(cluster, clock, seed=1, groups=groups)
        await cloud.start()
        store.put(
            PODS,
            ("default", "p"),
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "namespace": "default",
                    "name": "p",
                    "creationTimestamp": "2026-03-01T23:00:00Z",
                },
                "spec": {
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
                },
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
                },
            },
        )
        caches, recorder = Caches(cluster, clock), _CodeRecorder()
        async with address_of() as url:
            client = GrpcExpander(url)
            controller = NodesController(
                cluster,
                cloud,
                clock,
                recorder,
                None,
                Settings(expander=expander, grpc_expander_url=url),
                seed=1,
                caches=caches,
                expander=client,
            )
            keeping = asyncio.create_task(caches.run())
            await controller.synced()
            await controller.tick()
            keeping.cancel()
            await client.close()
        return {group.id: group.target_size for group in await cloud.refresh()}, recorder.codes, recorder.said

    return run_paced(main, start=START, pace=Pace(1))


@pytest.mark.parametrize("group", ["one", "two"])
def test_the_loop_buys_what_the_expander_says(group):
    """Of two equal groups the one that the other process names grows, and the records say so."""

    @asynccontextmanager
    async def address():
        async with serving(lambda *_: [group], "127.0.0.1:0") as port:
            yield f"localhost:{port}"

    targets, codes, said = one_tick(address)
    assert targets[group] == 1
    assert sum(targets.values()) == 1
    assert "ExpanderAnswered" in codes
    assert said["ExpanderAnswered"].subject == group


def test_the_expander_is_shown_a_node_of_each_group():
    """As upstream, also of a group that is no option, here as it cannot grow."""
    seen = []

    def choose(offers, nodes):
        seen.append(([one.group for one in offers], sorted(nodes)))
        return ["one"]

    @asynccontextmanager
    async def address():
        async with serving(choose, "127.0.0.1:0") as port:
            yield f"localhost:{port}"

    one_tick(address, full=["full"])
    assert seen == [(["one", "two"], ["full", "one", "two"])]


@pytest.mark.parametrize(("answer", "code"), [([], "ExpanderDeclined"), (["elsewhere"], "ExpanderSilent")])
def test_an_answer_without_groups_buys_nothing(answer, code):
    """It leaves no option, as upstream, also where another expander comes after; groups of others leave all."""
    handler = grpc.unary_unary_rpc_method_handler(
        lambda _request, _context: MESSAGES["BestOptionsResponse"](
            options=[{"nodeGroupId": one} for one in answer]
        ),
        response_serializer=encode,
    )

    @asynccontextmanager
    async def address():
        async with listening("127.0.0.1:0", SERVICE, {METHOD: handler}) as port:
            yield f"localhost:{port}"

    targets, codes, _ = one_tick(address, "grpc,least-waste")
    assert sum(targets.values()) == len(answer)
    assert code in codes
    assert ("Chosen" in codes) == bool(answer)


def test_without_an_answer_all_options_stay():
    """An expander that is not there holds nothing up: what comes after it in the chain decides."""

    @asynccontextmanager
    async def nobody():
        yield "localhost:1"

    targets, codes, said = one_tick(nobody, "grpc,least-waste")
    assert sum(targets.values()) == 1
    assert "ExpanderSilent" in codes
    (chosen,) = [group for group, size in targets.items() if size]
    assert said["ExpanderSilent"].subject == chosen, "it is among the reasons of the increase"
    assert "the expander at localhost:1 does not answer" in str(said["ExpanderSilent"].fields["why"])
