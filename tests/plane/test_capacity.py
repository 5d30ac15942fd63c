"""Requests for capacity at a real control plane: their definitions, statuses, templates, and the nodes that come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plane.defined import Defined
from tests.plane.towns import MEDIUM, SOON, kubetide_run, town

from kubetide.nodes.capacity.buffers.names import template_name
from kubetide.nodes.capacity.definitions import definitions
from kubetide.objects.capacity import condition_of, is_true
from kubetide.objects.kinds import (
    CAPACITY_BUFFERS,
    CAPACITY_QUOTAS,
    DEPLOYMENTS,
    POD_TEMPLATES,
    PROVISIONING_REQUESTS,
    RESOURCE_QUOTAS,
)
from kubetide.ports.errors import ApiError, Invalid
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow

USER = "kubetide-capacity"
FLAGS = (
    "--act",
    "--controllers=nodes",
    *SOON,
    "--scale-down-enabled=false",
    "--enable-provisioning-requests",
    "--capacity-buffer-controller-enabled",
    "--capacity-buffer-pod-injection-enabled",
    "--capacity-quotas-enabled",
)
GANG = {
    "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
    "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 3}],
}
CONSUMES = {"autoscaling.x-k8s.io/consume-provisioning-request": "gang"}


class Kinds(Defined):
    """The kinds on a plane, and what a test asks of them."""

    def __init__(self, place):
        super().__init__(place, definitions(), (PROVISIONING_REQUESTS, CAPACITY_BUFFERS, CAPACITY_QUOTAS))

    async def says(self, kind, name, condition):
        namespace = self.home if kind.namespaced else ""
        found = await self.cluster.get(kind, name, namespace=namespace)
        return is_true(found.status.conditions, condition)


def test_a_gang_a_buffer_and_a_quota(audited, tmp_path):
    """A gang gets its nodes at once and its pods run on them; a buffer has more bought, as far as quotas let it."""

    async def run(clock):
        async with town(audited, clock, tmp_path, replace(MEDIUM, initial=1)) as place:
            kinds, cluster, home = Kinds(place), place.cluster, place.home
            await kinds.define()
            try:
                spec = builders.pod_spec(cpu="1500m", memory="256Mi")
                worker = {"metadata": {"name": "worker"}, "template": {"spec": spec}}
                await cluster.create(POD_TEMPLATES, worker, namespace=home)
                gang = {"metadata": {"name": "gang"}, "spec": GANG}
                made = await cluster.create(PROVISIONING_REQUESTS, gang, namespace=home)
                with pytest.raises((Invalid, ApiError), match="Value is immutable"):
                    await cluster.patch(
                        PROVISIONING_REQUESTS,
                        made.metadata.name,
                        {"spec": {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"}},
                        namespace=home,
                    )
                limits = {"limits": {"resources": {"nodes": "4"}}}
                await cluster.create(CAPACITY_QUOTAS, {"metadata": {"name": "four"}, "spec": limits})
                async with kubetide_run(place, USER, *FLAGS):
                    await kinds.waits(
                        "the gang is provisioned", kinds.says, PROVISIONING_REQUESTS, "gang", "Provisioned"
                    )
                    bought = place.ledger.increased("medium")
                    assert bought in {2, 3}
                    note = {"spec": {"template": {"metadata": {"annotations": CONSUMES}}}}
                    pods = builders.deployment("gang", replicas=3, cpu="1500m", extra=note)
                    await cluster.create(DEPLOYMENTS, pods, namespace=home)
                    await place.until("all of the gang runs", lambda: len(place.running("gang")) == 3)
                    await kinds.waits(
                        "the booking is used up", kinds.says, PROVISIONING_REQUESTS, "gang", "BookingExpired"
                    )
                    web = builders.deployment("web", replicas=2, cpu="100m")
                    await cluster.create(DEPLOYMENTS, web, namespace=home)
                    target = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
                    for name, asked in (
                        ("spare", {"scalableRef": target, "percentage": 100}),
                        ("room", {"podTemplateRef": {"name": "worker"}, "replicas": 3}),
                    ):
                        body = {"metadata": {"name": name}, "spec": asked}
                        await cluster.create(CAPACITY_BUFFERS, body, namespace=home)
                        await kinds.waits(
                            "capacity is reserved", kinds.says, CAPACITY_BUFFERS, name, "Provisioning"
                        )
                    await place.until("four nodes are there", lambda: len(place.nodes.objects) == 4)
                    found = await cluster.get(CAPACITY_BUFFERS, "spare", namespace=home)
                    assert found.spec.provisioning_strategy == "buffer.x-k8s.io/active-capacity"
                    assert found.status.replicas == 2
                    template = await cluster.get(
                        POD_TEMPLATES.untyped, template_name("spare"), namespace=home
                    )
                    assert template["metadata"]["generation"] == found.status.pod_template_generation == 1
                    (container,) = template["template"]["spec"]["containers"]
                    assert container["image"]
                    copied = await cluster.get(POD_TEMPLATES.untyped, template_name("room"), namespace=home)
                    source = await cluster.get(POD_TEMPLATES.untyped, "worker", namespace=home)
                    # What admission adds to a pod stands in the copy alone.
                    spec, written = copied["template"]["spec"], source["template"]["spec"]
                    assert "serviceAccountName" not in written
                    assert (spec["serviceAccountName"], spec["priority"]) == ("default", 0)
                    requests = [one["resources"]["requests"] for one in spec["containers"]]
                    assert requests == [one["resources"]["requests"] for one in written["containers"]]
                    assert copied["metadata"]["generation"] == 1
                    await kinds.waits(
                        "the quota is reconciled", kinds.says, CAPACITY_QUOTAS, "four", "Reconciled"
                    )
                    assert place.ledger.increased("medium") == 3
                    assert place.ledger.refused == []
                    # The pods that run have 4.7 cores of it, spare 0.2, and one of room's pods the rest.
                    hard = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "6500m"}}}
                    await cluster.create(RESOURCE_QUOTAS, hard, namespace=home)
                    await kinds.waits(
                        "a buffer is limited", kinds.says, CAPACITY_BUFFERS, "room", "LimitedByQuotas"
                    )
                    room = await cluster.get(CAPACITY_BUFFERS, "room", namespace=home)
                    limited = condition_of(room.status.conditions, "LimitedByQuotas")
                    assert room.status.replicas == 1
                    assert limited.message == "Buffer replicas limited from 3 to 1 due to quotas: team"
            finally:
                await kinds.forget()

    run_real(run)
