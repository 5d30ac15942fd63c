"""The admission controller behind TLS, asked by an embedded API server."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec
import pytest
from tests.cluster.served import served
from tests.loops import run_alone
from tests.tasks import stop
from tests.vertical.making import NOW
from tests.vertical.pods_world import DEFINITION, recommendation

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.admission.http import HttpCaller
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    PODS,
    REPLICA_SETS,
    VPAS,
)
from kubetide.ports.errors import Invalid, NotFound
from kubetide.runtime.guard import Advice, guarded_cluster
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.serving import make_connector
from kubetide.testing import builders
from kubetide.units.time import after, before, hours, milliseconds, seconds
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.controller.server import ReviewHandler
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.admission.state import State
from kubetide.vertical.controller.lease import is_renewed, renew_lease
from kubetide.watching import Caches

HOME = {"namespace": "default"}
HERE = Settings(
    port=0,
    register_by_url=True,
    webhook_address="127.0.0.1",
    status_lease_update_interval=milliseconds(50),
    client_ca_file="/nowhere/ca",
    tls_cert_file="/nowhere/cert",
    tls_private_key="/nowhere/key",
)


class Bench:
    def __init__(self, clock, cluster, client, controller):
        self.clock, self.cluster, self.client, self.controller = clock, cluster, client, controller

    async def until(self, ready):
        async with asyncio.timeout(20):
            while not await ready():
                await self.clock.sleep(milliseconds(10))

    async def registered(self):
        with suppress(NotFound):
            await self.cluster.get(MUTATING_WEBHOOKS, "vpa-webhook-config")
            return True
        return False

    async def add_workload(self):
        web = await self.cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=1), **HOME)
        body = builders.replica_set("web-1", replicas=1)
        body["metadata"]["ownerReferences"] = [builders.owner_reference(web, controller=True)]
        self.owner = await self.cluster.create(REPLICA_SETS, body, **HOME)
        async with asyncio.timeout(20):
            while ("ReplicaSet", "default", "web-1") not in self.controller.state.workloads:
                await self.clock.sleep(milliseconds(10))

    async def add_vpa(self, **spec):
        body = {
            "apiVersion": VPAS.api_version,
            "kind": VPAS.kind,
            "metadata": {"name": "web"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, **spec},
        }
        made = await self.client.create(VPAS, body, **HOME)
        status = {"recommendation": {"containerRecommendations": [recommendation(container="app")]}}
        await self.cluster.patch(VPAS, "web", {"status": status}, **HOME, subresource="status")
        async with asyncio.timeout(20):
            while not len(self.controller.state.vpas):
                await self.clock.sleep(milliseconds(10))
        return made

    async def add_pod(self, name="web-0"):
        body = builders.pod(name, labels={"app": "web"})
        body["metadata"]["ownerReferences"] = [builders.owner_reference(self.owner, controller=True)]
        return await self.client.create(PODS, body, **HOME)


def bench(story, settings=HERE, *, acting=True, on_problem=lambda _: None):
    async def main(clock):
        async with (
            HttpCaller() as caller,
            served(clock, webhooks=caller) as (cluster, _, connection),
            HttpCluster(connection, clock) as client,
        ):
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
            inner = client if acting else guarded_cluster(client, Advice())
            caches = Caches(inner, clock)
            controller = AdmissionController(
                inner, clock, settings, caches=caches, host="127.0.0.1", on_problem=on_problem
            )
            async with running(controller, caches, clock):
                return await story(Bench(clock, cluster, client, controller))

    return run_real(main)


@asynccontextmanager
async def running(controller, caches, clock):
    task = asyncio.create_task(run_alone(controller, caches, clock))
    async with asyncio.timeout(20):
        await controller.listening.wait()
    yield
    assert not task.done(), task
    await stop(task)
    await controller.close()


def test_a_webhook_that_somebody_deletes_is_written_anew():
    """Without it evicted pods would come back unchanged; it is said once."""
    problems = []

    async def story(world):
        await world.until(world.registered)
        await world.cluster.delete(MUTATING_WEBHOOKS, "vpa-webhook-config")
        await world.until(world.registered)
        await world.add_workload()
        await world.add_vpa()
        return await world.add_pod()

    pod = bench(story, on_problem=problems.append)
    assert pod.spec.containers[0].resources.requests["cpu"] == "500m"
    [problem] = problems
    assert problem.endswith(
        "somebody has deleted the webhook configuration vpa-webhook-config; it is written anew"
    )


class Raced(EmbeddedCluster):
    """What is created here has just been created by another."""

    async def create(self, kind, body, **where):
        await super().create(kind, {**body, "spec": {"holderIdentity": "other"}}, **where)
        return await super().create(kind, body, **where)


def test_two_that_start_at_once_make_one_lease():
    """The one that is late renews the lease the next time, and nothing has failed."""

    async def main(clock):
        cluster = Raced(Store(), clock, seed=1)
        where = "vpa-admission-controller", "kube-system"
        found = []
        for _ in range(2):
            await renew_lease(cluster, *where, identity="this", every=seconds(10), now=clock.now())
            lease = await cluster.get(LEASES, where[0], namespace=where[1])
            fresh = await is_renewed(cluster, *where, after=before(clock.now(), seconds(1)))
            found.append((lease.spec.holder_identity, fresh))
        return found

    assert run_virtual(main, start=NOW) == [("other", False), ("this", True)]


def test_a_webhook_that_leads_elsewhere_is_written_anew_once_nobody_answers_there():
    """So upstream's program that is started once more, and then uninstalled, leaves no pod unchanged for good."""
    problems = []

    async def story(world):
        async def lead(url):
            path = "/webhooks/0/clientConfig/url"
            patch = [{"op": "replace", "path": path, "value": url}]
            await world.cluster.patch(MUTATING_WEBHOOKS, "vpa-webhook-config", patch, patch_type="json")

        async def url():
            found = await world.cluster.get(MUTATING_WEBHOOKS, "vpa-webhook-config")
            return found.webhooks[0].client_config.url

        async def renewed_as_of(now):
            where = "vpa-admission-controller", "kube-system"
            await renew_lease(world.cluster, *where, identity="upstream", every=seconds(10), now=now)

        async def told_once():
            return len(problems) == 1

        async def told_twice():
            return len(problems) == 2

        await world.until(world.registered)
        ours, theirs = await url(), "https://127.0.0.1:1"
        later = after(world.clock.now(), hours(1))
        await renewed_as_of(later)
        await lead(theirs)
        await renewed_as_of(later)
        await world.until(told_once)
        await renewed_as_of(later)
        await world.clock.sleep(milliseconds(700))
        kept = await url()
        await renewed_as_of(NOW)
        await world.until(told_twice)
        return kept == theirs and await url() == ours

    settings = msgspec.structs.replace(HERE, status_lease_update_interval=milliseconds(300))
    assert bench(story, settings, on_problem=problems.append)
    assert [problem.split(": ")[1] for problem in problems] == [
        "somebody has changed the webhook configuration vpa-webhook-config",
        "the webhook configuration vpa-webhook-config leads elsewhere, where nobody renews the lease; it is written anew",
    ]


def test_a_new_pod_gets_what_is_recommended():
    """Registered by itself, over TLS with certificates of its own, the webhook changes a real pod."""

    async def story(world):
        await world.until(world.registered)
        await world.add_workload()
        await world.add_vpa()
        pod = await world.add_pod()
        return pod, world.controller.handler.answers

    pod, answers = bench(story)
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "500Mi"}
    assert pod.metadata.annotations == {
        "vpaObservedContainers": "app",
        "vpaUpdates": "Pod resources updated by web: container 0: cpu request, memory request",
    }
    assert answers["applied", "Pod"] == 1


def test_vpa_objects_are_checked_and_completed():
    """A bad one is refused with the field, a good one without a mode gets the default."""

    async def story(world):
        await world.until(world.registered)
        with pytest.raises(Invalid) as refused:
            await world.add_vpa(updatePolicy={"updateMode": "Recreate", "minReplicas": 0})
        return str(refused.value), await world.add_vpa()

    said, made = bench(story)
    assert "spec.updatePolicy.minReplicas: Invalid value: 0: minReplicas has to be positive" in said
    assert made.spec.update_policy.update_mode == "Recreate"


def test_the_updater_is_reported_that_pods_are_answered_for(monkeypatch):
    """The lease is made and renewed, and says which replica does it."""
    monkeypatch.setenv("HOSTNAME", "vpa-1")

    async def story(world):
        async def lease():
            return await world.cluster.get(LEASES, "vpa-admission-controller", namespace="kube-system")

        async def renewed():
            with suppress(NotFound):
                return bool((await lease()).spec.renew_time)
            return False

        await world.until(renewed)
        return (await lease()).spec, world.controller.last_failure

    spec, failure = bench(story)
    assert (spec.holder_identity, spec.lease_duration_seconds, failure) == ("vpa-1", 1, "")


def test_labels_that_cannot_be_read_are_left_out():
    """The webhook is registered without them, and somebody hears of it."""
    said = []

    async def story(world):
        await world.until(world.registered)
        return (await world.cluster.get(MUTATING_WEBHOOKS, "vpa-webhook-config")).metadata.labels

    settings = msgspec.structs.replace(HERE, webhook_labels="team")
    assert not bench(story, settings, on_problem=said.append)
    assert said == [
        "admission: the webhook is registered without labels: webhook-labels: 'team' is no label: write key:value"
    ]


def test_the_lease_waits_for_the_webhook():
    """Without the webhook no lease is renewed: pods that the updater evicts would come back unchanged."""

    async def story(world):
        async def refused():
            return world.controller.failures > 2

        await world.until(refused)
        return (await world.cluster.list(LEASES)).items, world.controller.last_failure

    leases, failure = bench(story, msgspec.structs.replace(HERE, webhook_timeout_seconds=60))
    assert not leases
    assert "timeoutSeconds" in failure


def test_a_run_that_only_advises_registers_nothing():
    """It has no webhook and no lease; reviews are still answered."""

    async def story(world):
        await world.clock.sleep(milliseconds(300))
        leases = (await world.cluster.list(LEASES)).items
        return await world.registered(), len(leases), world.controller.failures

    assert bench(story, acting=False) == (False, 0, 0)


@pytest.mark.slow
def test_what_is_no_review_is_allowed_and_counted():
    """Malformed bodies, foreign content types and other methods never block; too large a body is refused."""

    async def story(world):
        url = f"https://127.0.0.1:{world.controller.port}/"
        trust = ssl.create_default_context(cadata=world.controller._pems.bundle.decode())
        found = []
        async with aiohttp.ClientSession(connector=make_connector(ssl=trust)) as session:
            for data, kind in (
                (b"{", "application/json"),
                (b"null", "application/json"),
                (
                    b'{"request": {"uid": "a", "resource": {"resource": "pods", "version": "v1"}, "object": 3}}',
                    "application/json",
                ),
                (b"{}", "text/plain"),
                (b"x" * (6 << 20), "application/json"),
            ):
                async with session.post(url, data=io.BytesIO(data), headers={"Content-Type": kind}) as answer:
                    body = await answer.read()
                    allowed = (
                        json.loads(body)["response"]["allowed"] if answer.status == 200 and body else None
                    )
                    found.append((answer.status, allowed))
        return found, dict(world.controller.handler.answers)

    found, answers = bench(story)
    assert found == [(200, True), (200, True), (200, True), (200, None), (413, None)]
    assert answers == {("error", "unknown"): 2, ("error", "Pod"): 1}


def test_a_bug_keeps_no_pod_out():
    """The answer to a review that fails unforeseen allows it by its UID: the API server takes no other for an answer."""

    async def main(clock):
        state = State()
        del state.vpas
        handler = ReviewHandler(state, clock)
        request = {"uid": "u", "resource": {"version": "v1", "resource": "pods"}, "object": {"metadata": {}}}
        done = handler.answer("application/json", json.dumps({"request": request}).encode())
        assert json.loads(done.body)["response"] == {"uid": "u", "allowed": True}
        assert (done.status, handler.bugs) == (200, 1)
        assert handler.last_problem.startswith("AttributeError")

    run_virtual(main, start=NOW)


def test_a_certificate_is_renewed_while_reviews_go_on():
    """After two thirds of its life the server shows a new one, which the registered authority has signed."""

    async def story(world):
        await world.until(world.registered)
        await world.add_workload()
        await world.add_vpa()
        made = world.controller._certificates
        first = world.controller._pems
        made._renew_at = made._renew_at.replace(year=2000)

        async def renewed():
            return world.controller._pems != first

        await world.until(renewed)
        pod = await world.add_pod()
        return pod.spec.containers[0].resources.requests["cpu"], world.controller.failures

    assert bench(story) == ("500m", 0)
