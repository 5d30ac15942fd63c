"""The roles of the VPA loops: what they ask of the API server is granted, and what is granted is asked."""

from __future__ import annotations

import asyncio

import pytest
from tests.deploy.requests import Observed, OnlyGranted, rows
from tests.embedded.controllers.live import play
from tests.vertical.pods_world import MemoryRecorder
from tests.vertical.recommender.live import Usage

from kubetide.loop import loop_entry
from kubetide.loop.runner import Runner
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, MUTATING_WEBHOOKS, PODS, VPAS
from kubetide.simulate.webhooks import OwnWebhooks
from kubetide.testing import builders
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.registration import NAME
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
    def __init__(self, clock, home=""):
        super().__init__(clock)
        self.home = home

    async def pod_samples(self, namespace="", labels=""):
        assert namespace == self.home
        self.used = {"any": (500, 900_000_000)}
        return await super().pod_samples(namespace, labels)


@pytest.fixture(scope="module")
def asked():
    """What each of the three loops asks while pods are evicted and resized, and a VPA goes."""
    seen = {name: set() for name in ("recommender", "updater", "admission")}
    play_vpas(seen)
    return seen


def play_vpas(seen, *, registered=False, home=""):
    """Play the three loops, whose requests are added to ``seen`` by name; ``registered``: another webhook is there.

    ``home`` is the only namespace whose VPA objects count; empty for all.
    Returns the requests of pods' containers in the end.
    """
    caller = OwnWebhooks()

    async def story(live):
        for body in definitions():
            await live.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        if registered:
            await live.cluster.create(MUTATING_WEBHOOKS, {"metadata": {"name": NAME}})
        await live.add_nodes("n1", "n2")
        for name in ("web", "db"):
            await live.add(DEPLOYMENTS, builders.deployment(name, replicas=2))
        caches, clusters = {}, {}
        for name, requests in seen.items():
            clusters[name] = Observed(live.cluster, requests)
            caches[name] = Caches(clusters[name], live.clock)
        loops = [
            RecommenderController(
                clusters["recommender"],
                ShopUsage(live.clock, home),
                live.clock,
                MemoryRecorder(),
                RecommenderSettings(vpa_object_namespace=home),
                caches=caches["recommender"],
            ),
            UpdaterController(
                clusters["updater"],
                live.clock,
                MemoryRecorder(),
                UpdaterSettings(vpa_object_namespace=home),
                caches=caches["updater"],
            ),
            AdmissionController(
                clusters["admission"],
                live.clock,
                AdmissionSettings(vpa_object_namespace=home),
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
        pods = (await live.cluster.list(PODS, **WHERE)).items
        return {one.spec.containers[0].resources.requests["cpu"] for one in pods}

    return play(story, "deployments", "replica_sets", "scheduler", "kubelets", webhooks=caller)


def test_with_a_namespace_of_its_own_no_loop_reads_another():
    """So rights in that namespace are enough to list and watch, and nothing else is held."""
    seen = {name: set() for name in ("recommender", "updater", "admission")}
    assert play_vpas(seen, home="shop") == play_vpas({name: set() for name in seen})
    lists = [one for requests in seen.values() for one in requests if one.verb in {"list", "watch"}]
    assert {one.resource for one in lists if one.namespace != "shop"} == set()


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
    ("get", "mutatingwebhookconfigurations"),
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


CACHED = ("get", "list", "watch")
TARGETS = (
    rows(("get", "watch"), "*", ("*/scale",))
    | rows(CACHED, "", ("replicationcontrollers",))
    | rows(CACHED, "apps", ("daemonsets", "deployments", "replicasets", "statefulsets"))
    | rows(CACHED, "batch", ("cronjobs", "jobs"))
    | rows(CACHED, "", ("limitranges", "nodes", "pods"))
    | rows(CACHED, "autoscaling.k8s.io", ("verticalpodautoscalers",))
)
EVENTS = rows((*CACHED, "create", "patch", "update"), "", ("events",))
CHECKPOINTS = (*CACHED, "create", "delete", "patch")
# Source: kubernetes/autoscaler, charts/vertical-pod-autoscaler, the templates of its three roles.
VPA_CHART = {
    "recommender": TARGETS
    | EVENTS
    | rows(("get", "list"), "metrics.k8s.io", ("pods",))
    | rows(("get", "patch"), "autoscaling.k8s.io", ("verticalpodautoscalers/status",))
    | rows(CHECKPOINTS, "autoscaling.k8s.io", ("verticalpodautoscalercheckpoints",)),
    "updater": TARGETS
    | EVENTS
    | rows(("patch",), "", ("pods", "pods/resize"))
    | rows(("create",), "", ("pods/eviction",))
    | rows(CACHED, "coordination.k8s.io", ("leases",)),
    "admission": TARGETS
    | rows(
        ("create", "delete", "get", "list"),
        "admissionregistration.k8s.io",
        ("mutatingwebhookconfigurations",),
    )
    | rows((*CACHED, "create", "update"), "coordination.k8s.io", ("leases",)),
}


def test_the_loops_act_with_the_rights_of_upstreams_chart():
    """Pods get their requests, over an older registration, in the accounts that are there already."""
    plain = play_vpas({name: set() for name in VPA_CHART})
    assert plain == play_vpas({name: OnlyGranted(rows) for name, rows in VPA_CHART.items()}, registered=True)
