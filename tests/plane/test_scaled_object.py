"""A ScaledObject at a real control plane: a queue that a real Prometheus counts, with what the chart grants."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from tests.cluster.prometheus_server import exporter, find_prometheus, running_prometheus
from tests.plane.hpa_walk import TIMES, kubectl
from tests.plane.towns import ACCOUNT, ROOMY, kubetide_run, requests_of, town
from tools.manifests import render

from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, HPAS, SCALED_OBJECTS
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import goes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_prometheus() is None, reason="not there: prometheus (KUBETIDE_PROMETHEUS)"),
]

LOOPS = ("--act", "--controllers=horizontal,scaledobjects", *TIMES)
CHART = ("--set=config.act=true", "--set=config.controllers={horizontal,scaledobjects}")
QUEUE = 'orders_waiting{shop="a"}'
DEFINITION = {
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "scope": "Namespaced",
        "names": {
            "kind": "ScaledObject",
            "listKind": "ScaledObjectList",
            "plural": "scaledobjects",
            "singular": "scaledobject",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
"""The kind as KEDA's chart defines it, without what its fields may say."""


@asynccontextmanager
async def defined(place):
    """Serve ScaledObjects meanwhile."""
    await place.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
    try:
        while not await is_served(place.cluster):
            await place.pause()
        yield
    finally:
        name = DEFINITION["metadata"]["name"]
        await place.cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        await goes(place.cluster, place.clock, CUSTOM_RESOURCE_DEFINITIONS, name, "")


async def is_served(cluster):
    try:
        await cluster.list(SCALED_OBJECTS)
    except NotFound:
        return False
    return True


@asynccontextmanager
async def granted(place, roles):
    """Grant what the chart grants meanwhile."""
    file = place.folder / "roles.yaml"
    file.write_text(roles)
    await kubectl(place.plane, "apply", "-f", str(file))
    try:
        yield
    finally:
        await kubectl(place.plane, "delete", "--wait=false", "-f", str(file))


def roles_of(text):
    """Return the documents of a rendered chart that are about who may do what."""
    return "---\n".join(part for part in text.split("---\n") if "rbac.authorization.k8s.io" in part)


class Worker:
    """A Deployment behind the queue."""

    def __init__(self, place):
        self.place, self.cluster, self.home = place, place.cluster, place.home

    async def add(self, address):
        await self.cluster.create(
            DEPLOYMENTS, builders.deployment("worker", replicas=0, cpu="100m"), namespace=self.home
        )
        trigger = {
            "serverAddress": address,
            "query": "sum(orders_waiting)",
            "threshold": "5",
            "activationThreshold": "2",
        }
        spec = {
            "scaleTargetRef": {"name": "worker"},
            "pollingInterval": 1,
            "cooldownPeriod": 3,
            "maxReplicaCount": 6,
            "triggers": [{"type": "prometheus", "metadata": trigger}],
        }
        body = {"metadata": {"name": "worker"}, "spec": spec}
        await self.cluster.create(SCALED_OBJECTS, body, namespace=self.home)

    async def has(self, count):
        place = self.place
        await place.until(f"{count} pods are ready", lambda: len(place.running("worker")) == count)

    async def condition(self, name):
        """Wait until the object has a condition, and return its status."""
        deadline = self.place.deadline()
        while True:
            found = await self.cluster.get(SCALED_OBJECTS.untyped, "worker", namespace=self.home)
            for one in found.get("status", {}).get("conditions", ()):
                if one["type"] == name:
                    return one["status"]
            assert self.place.clock.monotonic() < deadline, f"no condition {name}\n{self.place}"
            await self.place.pause()


def test_a_queue_that_prometheus_counts_scales_from_none_and_back(audited, helm, tmp_path):
    """Below the activation threshold nothing runs; then a pod for five orders; after the cooldown none, and no HPA."""
    (tmp_path / "prometheus").mkdir()
    roles = roles_of(render(helm, *CHART))

    async def run(clock):
        async with town(audited, clock, tmp_path, ROOMY) as place, defined(place), granted(place, roles):
            worker = Worker(place)
            await worker.add(server.url)
            async with kubetide_run(place, ACCOUNT, *LOOPS):
                assert await worker.condition("Ready") == "True"
                assert await worker.condition("Active") == "False"
                assert place.running("worker") == []
                queue.series[QUEUE] = 22
                await worker.has(5)
                queue.series[QUEUE] = 0
                await worker.has(0)
                await place.until_reported(
                    "ScaledObject", "KEDAScaleTargetActivated", "KEDAScaleTargetDeactivated"
                )
            assert (await place.cluster.list(HPAS, namespace=place.home)).items == ()
            asked = requests_of(audited, ACCOUNT)
            assert {"scaledobjects/status", "deployments/scale"} <= {one.resource for one in asked}
            assert [one for one in asked if one.code == 403] == []

    with exporter(**{QUEUE: 1}) as queue, running_prometheus(tmp_path / "prometheus", queue) as server:
        run_real(run)
