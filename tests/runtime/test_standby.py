"""A replica that waits for its Lease answers reviews, where the API server trusts its certificate, and writes nothing."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import suppress

import aiohttp
import msgspec
import pytest
from tests.tasks import stop

pytest.importorskip("cryptography", reason="certificates need the extra tls")

from tests.plane.running import free_ports
from tests.runtime.services import service_of
from tests.vertical.pods_world import DEFINITION, HOME, recommendation

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    HPAS,
    LEASES,
    MUTATING_WEBHOOKS,
    REPLICA_SETS,
    VPAS,
)
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders
from kubetide.units.time import milliseconds


class Turn:
    """The guard of a process: it may write once it leads."""

    def __init__(self):
        self.leads = asyncio.Event()

    def refusal(self):
        return "" if self.leads.is_set() else "another process holds the lease"

    async def come(self):
        await self.leads.wait()


def brought(folder):
    """Certificates as a Secret would bring them, as flags; and who trusts them."""
    authority = Authority()
    pair = authority.server(["127.0.0.1"])
    flags = {}
    for flag, content in (
        ("client-ca-file", authority.certificate),
        ("tls-cert-file", pair.certificate),
        ("tls-private-key", pair.key),
    ):
        path = folder / flag
        path.write_bytes(content)
        flags[flag] = str(path)
    return flags, ssl.create_default_context(cadata=authority.certificate.decode())


async def build(cluster):
    await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
    web = await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=1), **HOME)
    body = builders.replica_set("web-1", replicas=1)
    body["metadata"]["ownerReferences"] = [builders.owner_reference(web, controller=True)]
    owner = await cluster.create(REPLICA_SETS, body, **HOME)
    vpa = {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": "web"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
    await cluster.create(VPAS, vpa, **HOME)
    status = {"recommendation": {"containerRecommendations": [recommendation(container="app")]}}
    await cluster.patch(VPAS, "web", {"status": status}, **HOME, subresource="status")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    await cluster.create(HPAS, builders.hpa("web", "web", extra={"spec": {"scaleTargetRef": target}}), **HOME)
    pod = builders.pod("web-1-a", namespace="default", labels={"app": "web"}, cpu="100m", memory="100Mi")
    pod["metadata"]["ownerReferences"] = [builders.owner_reference(owner, controller=True)]
    pod["spec"]["containers"][0]["name"] = "app"
    return pod


async def reviewed(session, port, trusted, pod):
    """The patched paths of a new pod; None where nobody answers."""
    request = {
        "uid": "1",
        "namespace": "default",
        "operation": "CREATE",
        "object": pod,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    try:
        async with session.post(f"https://127.0.0.1:{port}", json=review, ssl=trusted) as answer:
            response = msgspec.json.decode(await answer.read())["response"]
    except aiohttp.ClientConnectorError:
        return None
    patch = msgspec.json.decode(base64.b64decode(response["patch"]))
    return {one["path"] for one in patch}


async def exists(cluster, kind, name, **where):
    with suppress(NotFound):
        await cluster.get(kind, name, **where)
        return True
    return False


async def until(clock, ready):
    async with asyncio.timeout(120):
        while not await ready():
            await clock.sleep(milliseconds(20))


def stand_by(flags, trusted):
    """Play a replica that waits and then leads; return what it did before, and whether it did the rest then."""

    async def main(clock):
        [port] = free_ports(1)
        cluster, turn = EmbeddedCluster(Store(), clock, seed=1), Turn()
        pod = await build(cluster)
        service = service_of(
            clock,
            cluster,
            [],
            guard=turn,
            **flags,
            **{
                "controllers": "admission,horizontal",
                "vpa-port": port,
                "status-lease-update-interval": "50ms",
            },
        )
        task = asyncio.create_task(service.run(turn.come))
        async with aiohttp.ClientSession() as session:
            await clock.sleep(milliseconds(500))
            if trusted is not None:
                await until(clock, lambda: _ready(service))
            waiting = await reviewed(session, port, trusted or False, pod), service.not_ready()
            written = [
                await exists(cluster, MUTATING_WEBHOOKS, "vpa-webhook-config"),
                await exists(cluster, LEASES, "vpa-admission-controller", namespace="kube-system"),
                (await cluster.get(HPAS, "web", **HOME)).status.conditions is not None,
            ]
            turn.leads.set()
            await until(clock, lambda: exists(cluster, MUTATING_WEBHOOKS, "vpa-webhook-config"))
            leading = await reviewed(session, port, trusted or False, pod)
        await stop(task)
        return waiting, written, leading

    return run_real(main)


async def _ready(service):
    return not service.not_ready()


def test_a_standby_with_certificates_of_its_own_user_answers(tmp_path):
    """Its answer is that of the leader; webhook, lease and other loops wait for the turn."""
    waiting, written, leading = stand_by(*brought(tmp_path))
    assert waiting == (leading, "")
    assert "/spec/containers/0/resources/requests/cpu" in leading
    assert written == [False, False, False]


def test_a_standby_that_would_make_its_certificates_is_silent():
    """Nobody would trust them: it listens only once it leads, and is ready meanwhile, so that a rollout goes on."""
    waiting, written, leading = stand_by({}, None)
    assert waiting == (None, "")
    assert leading
    assert written == [False, False, False]
