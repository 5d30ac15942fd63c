"""Updater and admission controller together, in virtual time: pods that are evicted come back changed."""

from __future__ import annotations

import asyncio

from tests.embedded.controllers.live import play
from tests.vertical.pods_world import DEFINITION, MemoryRecorder, recommendation

from kubetide.loop.runner import Runner
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, VPAS
from kubetide.simulate.webhooks import OwnWebhooks
from kubetide.testing import builders
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.settings import Settings as AdmissionSettings
from kubetide.vertical.updater.controller import UpdaterController
from kubetide.vertical.updater.settings import Settings
from kubetide.watching import Caches

PARTS = ("deployments", "replica_sets", "scheduler", "kubelets")
WHERE = {"namespace": "shop"}


async def add_vpa(live, mode):
    body = {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": mode},
        },
    }
    await live.cluster.create(VPAS, body, **WHERE)
    status = {"recommendation": {"containerRecommendations": [recommendation(container="app")]}}
    await live.cluster.patch(VPAS, "web", {"status": status}, **WHERE, subresource="status")


def test_every_pod_of_a_deployment_gets_what_is_recommended_and_none_is_changed_twice():
    """Half of the replicas stay up at each moment; once all have it, nothing more is evicted."""
    caller = OwnWebhooks()

    async def story(live):
        await live.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
        await live.add_nodes("n1", "n2")
        await live.add(DEPLOYMENTS, builders.deployment("web", replicas=4))
        caches = Caches(live.cluster, live.clock)
        admission = AdmissionController(
            live.cluster, live.clock, AdmissionSettings(), caches=caches, answers=caller
        )
        updater = UpdaterController(live.cluster, live.clock, MemoryRecorder(), Settings(), caches=caches)
        runners = [Runner(one, live.clock) for one in (admission, updater)]
        tasks = [asyncio.create_task(one.run()) for one in (caches, *runners)]
        await live.sleep(30)
        before = {pod.metadata.uid for pod in await live.pods_now()}
        await add_vpa(live, "Recreate")
        least = 4
        for _ in range(40):
            await live.sleep(15)
            running = [pod for pod in await live.pods_now() if pod.status.phase == "Running"]
            least = min(least, sum(pod.metadata.deletion_timestamp is None for pod in running))
        pods = await live.pods_now()
        evicted = [name for name in [note.reason for note in updater.result.events] if "Evict" in name]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in (admission, updater):
            assert one.health.failures == 0, one.health.last_failure
        return before, pods, least, evicted, dict(admission.handler.answers)

    before, pods, least, evicted, answers = play(story, *PARTS, webhooks=caller)
    assert len(pods) == 4
    assert not {pod.metadata.uid for pod in pods} & before
    for pod in pods:
        assert pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "500Mi"}
        assert pod.metadata.annotations["vpaUpdates"].startswith("Pod resources updated by web:")
    assert least >= 2
    assert evicted == []
    assert answers["applied", "Pod"] == 4
