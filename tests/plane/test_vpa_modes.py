"""VPA objects in each mode on a real control plane, with ``kubetide run --act`` as recommender, updater and webhook.

Kubelets are the embedded ones, as clients of the real API server.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress

import pytest
from click.testing import CliRunner
from tests.plane.running import free_ports
from tests.plane.towns import ROOMY, kubetide_run, town
from tools.plane.build import find

from kubetide.cli.main import cli
from kubetide.objects.kinds import DEPLOYMENTS, EVENTS, MUTATING_WEBHOOKS, VPA_CHECKPOINTS, VPAS
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow

MODES = {"off": "Off", "initial": "Initial", "recreate": "Recreate", "in-place": "InPlaceOrRecreate"}
BEFORE = {"cpu": "100m", "memory": "64Mi"}
WEBHOOK = "vpa-webhook-config"
FLAGS = (
    "--act",
    "--controllers=recommender,updater,admission",
    "--recommender-interval=500ms",
    "--updater-interval=1s",
    "--in-recommendation-bounds-eviction-lifetime-threshold=1s",
    "--vpa-feature-gates=CPUStartupBoost=true",
    "--register-by-url",
    "--webhook-address=127.0.0.1",
    "--kube-api-qps=200",
    "--kube-api-burst=200",
)


@pytest.fixture
def definitions(plane):
    """The kinds of VPA objects, as a person installs them."""
    done = CliRunner().invoke(cli, ["install", "crds", "--apply", f"--kubeconfig={plane.kubeconfig}"])
    assert done.exit_code == 0, done.output
    yield
    kubectl = [find("kubectl"), "--kubeconfig", plane.kubeconfig]
    printed = CliRunner().invoke(cli, ["install", "crds"]).output
    subprocess.run([*kubectl, "delete", "-f", "-"], input=printed.encode(), check=True, capture_output=True)


@pytest.mark.usefixtures("definitions")
def test_each_mode(plane, tmp_path):
    """New pods through the webhook; evictions and resizes of those that run; checkpoints; a start-up boost and its end."""

    async def run(clock):
        async with town(plane, clock, tmp_path, ROOMY) as place:
            for name in MODES:
                await deploy(place, name)
            await place.until("they run", lambda: all(len(place.running(name)) == 2 for name in MODES))
            before = {name: requests(place, name) for name in MODES}
            (port,) = free_ports(1)
            async with kubetide_run(place, "vpa", *FLAGS, f"--vpa-port={port}", cloud=()):
                await until_registered(place)
                for name, mode in MODES.items():
                    await place.cluster.create(VPAS, vpa(name, mode), namespace=place.home)
                await check_modes(place, before)
                await check_boost(place)
            await place.cluster.delete(MUTATING_WEBHOOKS, WEBHOOK)

    run_real(run)


def vpa(name, mode, **spec):
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "metadata": {"name": name},
        "spec": {"targetRef": ref, "updatePolicy": {"updateMode": mode}, **spec},
    }


async def deploy(place, name, replicas=2):
    body = builders.deployment(name, replicas=replicas, cpu="100m", memory="64Mi")
    await place.cluster.create(DEPLOYMENTS, body, namespace=place.home)
    place.load.set_each(name, 300)


async def until_registered(place):
    async def there():
        with suppress(NotFound):
            return await place.cluster.get(MUTATING_WEBHOOKS, WEBHOOK)
        return None

    while await there() is None:
        await place.pause()


def requests(place, name):
    """What each running pod of an app requests, by UID."""
    return {pod.metadata.uid: pod.spec.containers[0].resources.requests for pod in place.running(name)}


def has(place, name):
    """The resources of each running pod of an app, as its kubelet says."""
    return [
        status.resources and status.resources.requests
        for pod in place.running(name)
        for status in pod.status.container_statuses
    ]


async def targets(place):
    """The recommendations, by VPA."""
    found = {}
    for one in (await place.cluster.list(VPAS, namespace=place.home)).items:
        if one.status.recommendation is not None:
            (container,) = one.status.recommendation.container_recommendations
            found[one.metadata.name] = container.target
    return found


async def check_modes(place, before):
    def all_are(name, expected):
        return list(requests(place, name).values()) == [expected] * 2

    target = {"cpu": "350m", "memory": "250Mi"}
    await place.until("evicted pods come back changed", lambda: all_are("recreate", target))
    await place.until(
        "pods are resized in place",
        lambda: all_are("in-place", target) and has(place, "in-place") == [target] * 2,
    )
    assert await targets(place) == dict.fromkeys(MODES, target)
    assert not requests(place, "recreate").keys() & before["recreate"].keys()
    assert requests(place, "in-place").keys() == before["in-place"].keys()
    # Those two modes leave pods alone that run; of new ones only Initial changes them.
    for name in ("off", "initial"):
        assert requests(place, name) == before[name]
        await place.cluster.patch(DEPLOYMENTS, name, {"spec": {"replicas": 3}}, namespace=place.home)
    for name, expected in (("off", BEFORE), ("initial", target)):
        await place.until(f"a third pod of {name} runs", lambda name=name: len(place.running(name)) == 3)
        new = [one for uid, one in requests(place, name).items() if uid not in before[name]]
        assert new == [expected], name
    checkpoints = (await place.cluster.list(VPA_CHECKPOINTS, namespace=place.home)).items
    assert {one.metadata.name for one in checkpoints} == {f"{name}-app" for name in MODES}
    await place.until_reported("VerticalPodAutoscaler", "EvictedPod")
    await place.until_reported("Pod", "EvictedByVPA", "InPlaceResizedByVPA")
    reported = {
        (event.reason, event.involved_object.kind, event.involved_object.name)
        for event in (await place.cluster.list(EVENTS, namespace=place.home)).items
        if event.reason in {"EvictedByVPA", "EvictedPod", "InPlaceResizedByVPA"}
    }
    assert {name for reason, kind, name in reported if kind != "Pod"} == {"recreate"}


async def check_boost(place):
    """A new pod begins with three times its request, and gets what is recommended when it has been ready for a while."""
    boost = {"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 2}}
    body = vpa("boosted", "Initial", startupBoost=boost)
    await place.cluster.create(VPAS, body, namespace=place.home)
    await deploy(place, "boosted", replicas=1)
    await place.until("it runs", lambda: len(place.running("boosted")) == 1)
    (pod,) = place.running("boosted")
    assert pod.spec.containers[0].resources.requests["cpu"] == "300m"
    original = json.loads(pod.metadata.annotations["vpaCpuStartupBoost/app"])
    assert original["requests"] == BEFORE
    await place.until(
        "the boost ends", lambda: [one and one["cpu"] for one in has(place, "boosted")] == ["350m"]
    )
    (after,) = place.running("boosted")
    assert after.metadata.uid == pod.metadata.uid
    assert "vpaCpuStartupBoost/app" not in after.metadata.annotations
