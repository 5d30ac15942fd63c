"""What a client that speaks protobuf requests, and which answers it accepts."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

import pytest
from aiohttp import web
from tests.cluster.answering import asking
from tests.cluster.protobuf.encoding import body, frame, list_body, message
from tests.cluster.served import served

from kubetide.cluster import HttpCluster
from kubetide.objects.api_types import STATUS, type_of_kind
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import Forbidden
from kubetide.runtime.configuration.config import ConfigError, make_config
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.watching import Informer

BOTH = "application/vnd.kubernetes.protobuf, application/json"


def packed(name, version):
    return message({"metadata": {"name": name, "resourceVersion": version}}, type_of_kind(PODS))


class Answers:
    """Answers lists and watches of pods in protobuf; notes what was accepted."""

    def __init__(self, *, refuses_streams=False):
        self.accepted, self.refuses_streams = [], refuses_streams

    async def __call__(self, request):
        self.accepted.append((request.path, request.headers["Accept"]))
        if "watch" not in request.query:
            first = "continue" not in request.query
            raws = [packed("one" if first else "two", "3")]
            whole = list_body("v1", "Pod", raws, version="5", more="next" if first else "")
            return web.Response(body=whole, content_type=MEDIA_TYPE)
        if self.refuses_streams and "sendInitialEvents" in request.query:
            said = {"message": "forbidden: sendInitialEvents", "reason": "Invalid", "code": 422}
            whole = body("v1", "Status", message(said, STATUS))
            return web.Response(body=whole, status=422, content_type=MEDIA_TYPE)
        response = web.StreamResponse(headers={"Content-Type": f"{MEDIA_TYPE};stream=watch"})
        await response.prepare(request)
        last = {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}
        events = frame("MODIFIED", body("v1", "Pod", packed("one", "6")))
        if "sendInitialEvents" in request.query:
            first = [frame("ADDED", body("v1", "Pod", packed(name, "3"))) for name in ("two", "one")]
            mark = frame("BOOKMARK", body("v1", "Pod", message(last, type_of_kind(PODS))))
            events = b"".join(first) + mark + events
        for cut in range(0, len(events), 7):
            await response.write(events[cut : cut + 7])
        await asyncio.Event().wait()


@pytest.mark.parametrize("keep", [None, lambda pod: pod.metadata.name])
@pytest.mark.parametrize("refuses_streams", [False, True])
def test_a_list_and_its_changes(refuses_streams, keep):
    """Streamed or in pages, a list and the changes after it come in protobuf, wherever the network cuts them."""

    async def run(clock):
        answers = Answers(refuses_streams=refuses_streams)
        async with (
            asking(answers, clock, protobuf=True) as client,
            aclosing(client.list_and_watch(PODS, keep=keep)) as parts,
        ):
            listing = await anext(parts)
            assert isinstance(listing, Listing)
            assert [pod if keep else pod.metadata.name for pod in listing.items] == ["one", "two"]
            assert listing.resource_version == "5"
            changes = []
            while not changes:
                changes = list(await anext(parts))
            assert [(one.type, one.name, one.resource_version) for one in changes] == [
                ("MODIFIED", "one", "6")
            ]
            assert (changes[0].object == "one") is bool(keep)
        assert {accept for _, accept in answers.accepted} == {BOTH}

    run_real(run)


def test_what_is_requested_in_json():
    """Without the setting, and for kinds with few objects, only JSON is accepted."""

    async def run(clock):
        seen = []

        async def handler(request):
            seen.append(request.headers["Accept"])
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": None})

        async with asking(handler, clock, protobuf=True) as client:
            await client.list(CONFIG_MAPS)
            await client.list(PODS.untyped)
        async with asking(handler, clock) as client:
            await client.list(PODS)
        assert seen == ["application/json"] * 3

    run_real(run)


def test_a_server_that_speaks_json():
    """The embedded cluster answers in JSON, and that is read as well: first list, changes and all."""

    async def run(clock):
        async with (
            served(clock) as (cluster, _, connection),
            HttpCluster(connection, clock, protobuf=True) as client,
        ):
            await cluster.create(PODS, builders.pod("one"), namespace="default")
            assert [pod.metadata.name for pod in (await client.list(PODS)).items] == ["one"]
            informer = Informer(client, PODS, clock)
            running = asyncio.ensure_future(informer.run())
            await informer.synced()
            changed = asyncio.Event()
            informer.on_change(lambda key, *_: changed.set() if key[1] == "two" else None)
            await cluster.create(PODS, builders.pod("two"), namespace="default")
            await asyncio.wait_for(changed.wait(), 30)
            assert sorted(name for _, name in informer.objects) == ["one", "two"]
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    run_real(run)


def test_a_refusal_in_protobuf():
    """A Status in protobuf is reported in the server's words."""

    async def run(clock):
        said = {"message": 'pods is forbidden: User "viewer" cannot list', "reason": "Forbidden", "code": 403}
        whole = body("v1", "Status", message(said, STATUS))

        async def handler(_):
            return web.Response(body=whole, status=403, content_type=MEDIA_TYPE)

        async with asking(handler, clock, protobuf=True) as client:
            with pytest.raises(Forbidden, match='pods is forbidden: User "viewer" cannot list'):
                await client.list(PODS)

    run_real(run)


def test_the_setting(monkeypatch):
    """The flag is upstream's, JSON its default; without the extra it says how to get it."""

    def chosen(value):
        return make_config([("--", {"kube-api-content-type": value})]).run.kube_api_content_type

    assert make_config([]).run.kube_api_content_type == "application/json"
    assert chosen(MEDIA_TYPE) == MEDIA_TYPE
    with pytest.raises(ConfigError, match=r"application/json or application/vnd\.kubernetes\.protobuf"):
        chosen("application/yaml")
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(ConfigError, match=r"pip install 'protobuf>="):
        chosen(MEDIA_TYPE)
    assert chosen("application/json") == "application/json"
