"""Custom kinds at a real API server: the example runs there as it is, and our server answers as it does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import aiohttp
import pytest
import yaml
from tests.cluster.served import served
from tests.cluster.test_crontab import CRON_TABS, EXAMPLE, running
from tests.embedded.server.test_custom_fields import DEFINITION, NAME, ODD, TABS, tab
from tests.horizontal.running import MemoryRecorder, Usage
from tests.loops import run_alone
from tests.tasks import stop

from kubetide.cluster import HttpCluster
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, HPAS, PODS
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import eventually, goes, scratch
from kubetide.units.time import format_rfc3339, minutes, seconds
from kubetide.watching import Caches

pytestmark = pytest.mark.slow

MERGE = {"Content-Type": "application/merge-patch+json"}
JSON = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
BOGUS = {"spec": {"bogus": 1, "map": {"x": {"z": 1}}}}
TWICE = json.dumps(tab("b", image="i", bogus=1)).replace('"image": "i"', '"image":"i","image":"j"')
A = f"{TABS}/a"

# Played in order at both servers.
REQUESTS = [
    ("POST", f"{TABS}?fieldValidation=Strict", ODD),
    ("POST", f"{TABS}?fieldValidation=Warn", ODD),
    ("POST", f"{TABS}?fieldValidation=Ignore", ODD),
    ("POST", TABS, ODD),
    ("POST", f"{TABS}?fieldValidation=Strict", TWICE),
    ("POST", TABS, TWICE),
    ("POST", TABS, tab("a", image="i", pick="c")),
    ("POST", TABS, tab("a", image="i", replicas=-1)),
    ("POST", f"{TABS}?fieldValidation=Strict", tab("a", image="i", free={"x": 1}, any={"y": 2})),
    ("PATCH", f"{A}?fieldValidation=Strict", BOGUS, MERGE),
    ("PATCH", A, {**BOGUS, "metadata": {"what": 1}}, MERGE),
    ("PATCH", f"{A}/status?fieldValidation=Strict", {"status": {"bogus": 1}}, MERGE),
    ("PATCH", f"{A}?fieldValidation=Strict", [{"op": "add", "path": "/spec/bogus", "value": 1}], JSON),
    ("PATCH", A, [{"op": "add", "path": "/spec/bogus", "value": 1}], JSON),
    ("PATCH", f"{TABS}/none?fieldValidation=Strict", BOGUS, MERGE),
    ("PATCH", f"{TABS}/c?fieldManager=m", tab("c", image="i", bogus=1), APPLY),
    ("PATCH", f"{TABS}/c?fieldManager=m", tab("c", image="i", map={"x": {"z": 1}}), APPLY),
    ("PATCH", f"{TABS}/c?fieldManager=m&fieldValidation=Strict", tab("c", image="i", free={"x": 1}), APPLY),
]


async def replies(url, connection):
    """A server's answers to each request, and its documents of the kind."""
    headers = {"Authorization": f"Bearer {connection.token}"}
    connector = make_connector(ssl=connection.tls())
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        found = []
        for method, path, body, *more in REQUESTS:
            data = body if isinstance(body, str) else json.dumps(body)
            sent = more[0] if more else {"Content-Type": "application/json"}
            async with session.request(method, url + path, data=data, headers=sent) as got:
                found.append((method, path, *reported(got, await got.json())))
        documents = []
        for path in ("/openapi/v3/apis/stable.example.com/v1", "/openapi/v2"):
            async with session.get(url + path) as got:
                documents.append(schema_in(await got.json(content_type=None)))
    return found, documents


def reported(got, body):
    """Code, message and warnings; of the object that a refused patch shows, only its spec."""
    message = body.get("message", "") if body.get("kind") == "Status" else body["spec"]
    start = ' "" is invalid: patch: Invalid value: '
    if isinstance(message, str) and message.startswith(start):
        shown, _, problem = message.removeprefix(start).partition(": strict")
        message = (json.loads(json.loads(shown))["spec"], problem)
    return got.status, message, got.headers.getall("Warning", [])


def schema_in(document):
    """The kind's schema without the texts about fields that all objects have, which ours leaves out."""
    schemas = document["definitions"] if "definitions" in document else document["components"]["schemas"]
    schema = schemas[NAME]
    for part in (schema, schema["properties"]["spec"]["properties"]["embedded"]):
        for name in ("apiVersion", "kind", "metadata"):
            part.get("properties", {}).get(name, {}).pop("description", None)
    return schema


async def define(cluster, clock, definition):
    name = definition["metadata"]["name"]
    await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition)

    async def is_served():
        try:
            await cluster.list(CRON_TABS)
            raw = await cluster.get_raw("/openapi/v2")
        except NotFound:
            return False
        return NAME.encode() in raw

    await eventually(clock, f"{name} is served", is_served)


async def undefine(cluster, clock, definition):
    name = definition["metadata"]["name"]
    await cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    await goes(cluster, clock, CUSTOM_RESOURCE_DEFINITIONS, name, "")


def test_both_servers_answer_alike(quiet_plane):
    """Documents, refusals and warnings about the fields of a custom kind are those of kube-apiserver."""

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as real:
            await define(real, clock, DEFINITION)
            expected, documents = await replies(quiet_plane.url, quiet_plane.connection)
            await undefine(real, clock, DEFINITION)
        async with served(clock) as (embedded, server, connection):
            await embedded.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
            found, ours = await replies(server.url, connection)
        for one, other in zip(found, expected, strict=True):
            assert one == other
        assert ours == documents

    run_real(run)


def test_the_example_at_a_real_cluster(quiet_plane):
    """The controller of the example makes pods and follows ``scale`` there too."""
    definition = yaml.safe_load((EXAMPLE / "crd.yaml").read_text())
    tab = yaml.safe_load((EXAMPLE / "crontab.yaml").read_text())
    command = [sys.executable, str(EXAMPLE / "controller.py"), "--kubeconfig", str(quiet_plane.kubeconfig)]

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as cluster, scratch(cluster) as home:

            async def comes_to(replicas):
                async def there():
                    found = await cluster.list(PODS, namespace=home)
                    name = tab["metadata"]["name"]
                    status = (await cluster.get(CRON_TABS, name, namespace=home)).get("status") or {}
                    names = [pod.metadata.name for pod in found.items]
                    expected_names = [f"{name}-{number}" for number in range(replicas)]
                    return names == expected_names and status.get("replicas") == replicas

                await eventually(clock, f"{replicas} pods", there)

            await define(cluster, clock, definition)
            try:
                await cluster.create(CRON_TABS, tab, namespace=home)
                await comes_to(1)
                scale = await cluster.replace_scale(CRON_TABS, tab["metadata"]["name"], 3, namespace=home)
                assert scale.status.selector == f"crontab={tab['metadata']['name']}"
                await comes_to(3)
                await cluster.replace_scale(CRON_TABS, tab["metadata"]["name"], 1, namespace=home)
                await comes_to(1)
            finally:
                await undefine(cluster, clock, definition)

    with running(command, "keeping the pods", stdout=subprocess.PIPE):
        run_real(run)


def test_an_hpa_of_a_custom_kind(quiet_plane):
    """The horizontal loop finds a kind of a real API server by its discovery, and scales by it."""
    definition = yaml.safe_load((EXAMPLE / "crd.yaml").read_text())
    tab = yaml.safe_load((EXAMPLE / "crontab.yaml").read_text())
    hpa = yaml.safe_load((EXAMPLE / "hpa.yaml").read_text())
    name = tab["metadata"]["name"]

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as cluster, scratch(cluster) as home:
            await define(cluster, clock, definition)
            await cluster.create(CRON_TABS, tab, namespace=home)
            status = {"status": {"replicas": 1, "labelSelector": "app=tab"}}
            await cluster.patch(CRON_TABS, name, status, namespace=home, subresource="status")
            await cluster.create(
                PODS, builders.pod("tab-0", labels={"app": "tab"}, cpu="100m"), namespace=home
            )
            since = format_rfc3339(clock.now() - minutes(60))
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
            status = {"status": {"phase": "Running", "startTime": since, "conditions": [ready]}}
            await cluster.patch(PODS, "tab-0", status, namespace=home, subresource="status")
            await cluster.create(HPAS, hpa, namespace=home)
            usage = Usage(cluster, clock, 100)
            caches, settings = Caches(cluster, clock), Settings(sync_period=seconds(1))
            loop = HorizontalController(
                cluster, usage, clock, MemoryRecorder(), None, settings, caches=caches
            )

            async def doubled():
                return (await cluster.get(CRON_TABS, name, namespace=home))["spec"]["replicas"] == 2

            task = asyncio.create_task(run_alone(loop, caches, clock))
            try:
                await eventually(clock, "the HPA doubles the one pod", doubled)
            finally:
                await stop(task)
                await undefine(cluster, clock, definition)
            assert loop.health.bugs == 0, loop.health.last_failure

    run_real(run)
