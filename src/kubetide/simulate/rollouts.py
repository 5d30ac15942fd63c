"""New images of a service's Deployment during a run, and the memory of their containers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from kubetide.embedded.load import Needs
from kubetide.objects.kinds import DEPLOYMENTS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.simulate.scenarios.spec import RolloutSpec, Scenario, ServiceSpec, start_of
from kubetide.units.quantity import whole
from kubetide.units.time import Duration, after, parse_duration


def needs_by_image(spec: ServiceSpec) -> dict[str, Needs]:
    """Return the memory needs of each new image's containers; a rollout without one keeps the earlier needs."""
    found: dict[str, Needs] = {}
    memory, leak = spec.base_memory, spec.leak_per_hour
    for one in _in_order(spec):
        memory = memory if one.base_memory is None else one.base_memory
        leak = leak if one.leak_per_hour is None else one.leak_per_hour
        found[one.image] = Needs(whole(memory), whole(leak))
    return found


async def run_rollouts(scenario: Scenario, cluster: Cluster, clock: Clock) -> None:
    """Set the Deployments' new images at their times."""
    async with asyncio.TaskGroup() as group:
        for service in scenario.services:
            for one in _in_order(service):
                group.create_task(_roll_out(scenario, service, one, cluster, clock))


async def _roll_out(
    scenario: Scenario, service: ServiceSpec, rollout: RolloutSpec, cluster: Cluster, clock: Clock
) -> None:
    due = after(start_of(scenario), parse_duration(rollout.at))
    await clock.sleep(Duration(max(due - clock.now(), 0)))
    with suppress(NotFound):
        deployment = await cluster.get(DEPLOYMENTS.untyped, service.deployment, namespace=service.namespace)
        containers = deployment["spec"]["template"]["spec"]["containers"]
        new = [{"name": containers[0]["name"], "image": rollout.image}]
        body = {"spec": {"template": {"spec": {"containers": new}}}}
        await cluster.patch(
            DEPLOYMENTS, service.deployment, body, namespace=service.namespace, patch_type="strategic"
        )


def _in_order(spec: ServiceSpec) -> list[RolloutSpec]:
    return sorted(spec.rollouts, key=lambda one: parse_duration(one.at))
