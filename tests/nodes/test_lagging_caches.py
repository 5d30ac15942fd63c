"""Requests for capacity whose statuses come late to the loop's caches: what was just answered is not answered again."""

from __future__ import annotations

import pytest
from tests.nodes.live import play, replayed
from tests.nodes.requests import ATOMIC

from kubetide.objects.kinds import PODS, PROVISIONING_REQUESTS
from kubetide.testing import builders
from kubetide.units.time import Duration, minutes, seconds

CONSUMES = {"annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": "gang"}}


class Lagging:
    """A cluster whose changes of ProvisioningRequests are seen late; ``clock`` is set once there is one."""

    def __init__(self, lag):
        self.lag, self.clock = lag, None

    def __call__(self, cluster):
        self._cluster = cluster
        return self

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def watch(self, kind, **where):
        async for event in self._cluster.watch(kind, **where):
            if kind.plural == PROVISIONING_REQUESTS.plural and self.clock is not None:
                await self.clock.sleep(self.lag)
            yield event


@pytest.mark.parametrize(
    ("lag", "others"),
    [(Duration(0), 0), (Duration(0), 1), (seconds(1), 0), (seconds(1), 1), (seconds(25), 0)],
)
def test_a_request_whose_pods_wait_already_is_bought_once(lag, others):
    """Its pods take all that was bought, so that a second answer would buy as much again. Next ticks come at once."""
    late = Lagging(lag)

    async def story(world):
        late.clock = world.clock
        await world.define_capacity_kinds()
        await world.add_pod_template("worker", "1500m")
        template = {"metadata": CONSUMES}
        await world.deploy("gang", replicas=3, cpu="1500m", extra={"spec": {"template": template}})
        await world.after(minutes(1))
        for number in range(others):
            other = builders.pod(f"other-{number}", namespace="default", cpu="1500m")
            await world.cluster.create(PODS, other, namespace="default")
        spec = {
            "provisioningClassName": ATOMIC,
            "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 3}],
        }
        gang = {"metadata": {"name": "gang"}, "spec": spec}
        await world.cluster.create(PROVISIONING_REQUESTS, gang, namespace="default")
        await world.after(minutes(5))
        assert (len(world.nodes), world.pending) == (3 + others, [])
        found = await world.cluster.get(PROVISIONING_REQUESTS, "gang", namespace="default")
        said = [(one.type, one.reason) for one in found.status.conditions]
        assert said == [
            ("Accepted", "Accepted"),
            ("Provisioned", "CapacityIsProvisioned"),
            ("BookingExpired", "CapacityBookingConsumed"),
        ]

    assert replayed(play(story, wrap=late, enable_provisioning_requests=True)) > 10
