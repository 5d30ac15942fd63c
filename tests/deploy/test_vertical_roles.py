"""The roles of the VPA loops: what they ask of the API server is granted, and what is granted is asked."""

from __future__ import annotations

import asyncio

import pytest
from tests.deploy.requests import Observed
from tests.embedded.controllers.live import play
from tests.vertical.pods_world import MemoryRecorder
from tests.vertical.recommender.test_controller import Usage

from kubetide.loop import loop_entry
from kubetide.loop.runner import Runner
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, VPAS
from kubetide.simulate.webhooks import OwnWebhooks
from kubetide.testing import builders
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.settings import Settings as AdmissionSettings
from kubetide.vertical.definitions import definitions
from kubetide.vertical.recommender.controller import RecommenderController
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings
from kubetide.vertical.updater.controller import UpdaterController
from kubetide.vertical.updater.settings import Settings as UpdaterSettings
from kubetide.watching import Caches

WHERE = {"namespace": "shop"}


def vpa(name, target, mode):
    return {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "updatePolicy": {"updateMode": mode},
        },
    }


class ShopUsage(Usage):
    async def pod_samples(self, namespace="", labels=""):
        self.used = {"any": (500, 900_000_000)}
        return await super().pod_samples(namespace, labels)


@pytest.fixture(scope="module")
def asked():
    """What each of the three loops asks while pods are evicted and resized, and a VPA goes."""
    caller = OwnWebhooks()

    async def story(live):
        for body in definitions():
            await live.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        await live.add_nodes("n1", "n2")
        for name in ("web", "db"):
            await live.add(DEPLOYMENTS, builders.deployment(name, replicas=2))
        seen = {name: set() for name in ("recommender", "updater", "admission")}
        caches, clusters = {}, {}
        for name, requests in seen.items():
            clusters[name] = Observed(live.cluster, requests)
            caches[name] = Caches(clusters[name], live.clock)
        loops = [
            RecommenderController(
                clusters["recommender"],
                ShopUsage(live.clock),
                live.clock,
                MemoryRecorder(),
                RecommenderSettings(),
                caches=caches["recommender"],
            ),
            UpdaterController(
                clusters["updater"], live.clock, MemoryRecorder(), UpdaterSettings(), caches=caches["updater"]
            ),
            AdmissionController(
                clusters["admission"],
                live.clock,
                AdmissionSettings(),
                caches=caches["admission"],
                answers=caller,
            ),
        ]
        runners = [Runner(one, live.clock) for one in loops]
        tasks = [asyncio.create_task(one.run()) for one in (*caches.values(), *runners)]
        await live.sleep(30)
        await live.cluster.create(VPAS, vpa("web", "web", "Recreate"), **WHERE)
        await live.cluster.create(VPAS, vpa("db", "db", "InPlaceOrRecreate"), **WHERE)
        await live.sleep(300)
        await live.cluster.delete(VPAS, "web", **WHERE)
        await live.sleep(900)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in loops:
            assert one.health.failures == 0, one.health.last_failure
        return seen

    return play(story, "deployments", "replica_sets", "scheduler", "kubelets", webhooks=caller)


@pytest.mark.parametrize("name", ["recommender", "updater", "admission"])
def test_what_a_loop_asks_is_granted(asked, name):
    """Each request of a loop is allowed by its own role."""
    grants = [grant for role in loop_entry(name).roles for grant in role.grants]
    refused = {
        one
        for one in asked[name]
        if not any(
            grant.allows(one.verb, one.group, one.resource)
            and (not grant.names or one.verb == "create" or one.name in grant.names)
            for grant in grants
        )
    }
    assert refused == set()


# What only a custom target, usage from external metrics, another registration or an event that comes again brings up, and kinds that the embedded
# cluster does not serve, so that nobody can watch them.
RARE = {
    ("get", "*/scale"),
    ("list", "*"),
    ("list", "pods"),
    ("patch", "events"),
    ("patch", "mutatingwebhookconfigurations"),
    ("watch", "limitranges"),
    ("watch", "replicationcontrollers"),
}


@pytest.mark.parametrize("name", ["recommender", "updater", "admission"])
def test_what_is_granted_is_asked(asked, name):
    """No loop may do what it never does."""
    unused = {
        (verb, resource)
        for role in loop_entry(name).roles
        for grant in role.grants
        for verb in grant.verbs
        for resource in grant.resources
        if not any(one.verb == verb and one.resource == resource for one in asked[name])
    }
    assert unused - RARE == set()
