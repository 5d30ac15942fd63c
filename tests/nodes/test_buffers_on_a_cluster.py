"""CapacityBuffers on a living cluster: their templates, and the quotas that limit them."""

from __future__ import annotations

from tests.nodes.live import Refusing, play, replayed

from kubetide.objects.capacity import condition_of
from kubetide.objects.kinds import (
    CAPACITY_BUFFERS,
    DEPLOYMENTS,
    POD_TEMPLATES,
    RESOURCE_QUOTAS,
)
from kubetide.ports.errors import ApiError
from kubetide.testing import builders
from kubetide.units.time import minutes


class OneRefusal:
    """A cluster that once refuses to replace a PodTemplate."""

    def __init__(self, cluster):
        self._cluster, self.refused = cluster, 0

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def replace(self, kind, body, **arguments):
        if kind.plural == POD_TEMPLATES.plural and not self.refused:
            self.refused += 1
            raise ApiError("the server is busy")
        return await self._cluster.replace(kind, body, **arguments)


def test_a_template_whose_update_was_refused_is_updated_by_the_next_tick():
    """The copy of a workload's template follows its pods, also after an error, and the records replay."""

    async def story(world):
        await world.define_capacity_kinds()
        await world.deploy(replicas=1, cpu="1")
        web = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
        spare = {"metadata": {"name": "spare"}, "spec": {"scalableRef": web, "replicas": 1}}
        await world.cluster.create(CAPACITY_BUFFERS, spare, namespace="default")
        await world.after(minutes(5))
        larger = builders.pod_spec(cpu="1500m")
        changed = {"spec": {"template": {"spec": larger}}}
        await world.cluster.patch(DEPLOYMENTS, "web", changed, namespace="default")
        await world.after(minutes(5))
        name = "capacitybuffer-spare-pod-template"
        made = await world.cluster.get(POD_TEMPLATES, name, namespace="default")
        assert made.template.spec.containers[0].resources.requests["cpu"] == "1500m"
        assert made.metadata.generation == 2

    world = play(story, wrap=OneRefusal, capacity_buffer_controller_enabled=True)
    assert replayed(world) > 3


async def set_quota(world, hard):
    status = {"status": {"hard": hard, "used": {}}}
    await world.cluster.patch(RESOURCE_QUOTAS, "team", status, namespace="default", subresource="status")


async def make_buffer_in_quota(world):
    """Make a buffer of five pods of a node each, and a quota that leaves two."""
    await world.define_capacity_kinds()
    await world.cluster.create(RESOURCE_QUOTAS, {"metadata": {"name": "team"}}, namespace="default")
    await set_quota(world, {"requests.cpu": "3"})
    await world.add_pod_template("worker", "1500m")
    room = {"metadata": {"name": "room"}, "spec": {"podTemplateRef": {"name": "worker"}, "replicas": 5}}
    await world.cluster.create(CAPACITY_BUFFERS, room, namespace="default")


BUFFERS = {"capacity_buffer_controller_enabled": True, "capacity_buffer_pod_injection_enabled": True}


def test_a_buffer_follows_its_quota():
    """Nodes are bought for the pods that the quota leaves, more once it grows, and the records replay."""

    async def story(world):
        await make_buffer_in_quota(world)
        await world.after(minutes(5))
        assert len(world.nodes) == 2
        await set_quota(world, {"requests.cpu": "6"})
        await world.after(minutes(5))
        assert len(world.nodes) == 4
        found = await world.cluster.get(CAPACITY_BUFFERS, "room", namespace="default")
        condition = condition_of(found.status.conditions, "LimitedByQuotas")
        assert (condition.status, condition.message) == (
            "True",
            "Buffer replicas limited from 5 to 4 due to quotas: team",
        )
        await world.cluster.delete(RESOURCE_QUOTAS, "team", namespace="default")
        await world.after(minutes(5))
        assert len(world.nodes) == 5

    assert replayed(play(story, full_every=7, **BUFFERS)) > 20


def test_a_cluster_that_refuses_quotas_is_served_without_them():
    """The loop goes on, nodes are bought for the whole buffer, and only the quotas are unread."""

    async def story(world):
        await make_buffer_in_quota(world)
        await world.after(minutes(5))
        assert len(world.nodes) == 5
        assert world.controller.state.capacity.unread == (RESOURCE_QUOTAS.plural,)

    assert replayed(play(story, wrap=lambda inner: Refusing(inner, (RESOURCE_QUOTAS,)), **BUFFERS)) > 5


def test_a_buffer_takes_over_a_template_that_was_there_before():
    """As upstream, the buffer then owns the template, so that both are deleted together."""
    name = "capacitybuffer-room-pod-template"

    async def story(world):
        await world.define_capacity_kinds()
        await world.add_pod_template("worker", "2")
        await world.add_pod_template(name, "1")
        room = {"metadata": {"name": "room"}, "spec": {"podTemplateRef": {"name": "worker"}, "replicas": 1}}
        uid = (await world.cluster.create(CAPACITY_BUFFERS, room, namespace="default")).metadata.uid
        await world.after(minutes(1))
        taken = await world.cluster.get(POD_TEMPLATES, name, namespace="default")
        assert taken.template.spec.containers[0].resources.requests["cpu"] == "2"
        assert [(one.name, one.uid) for one in taken.metadata.owner_references or ()] == [("room", uid)]

    play(story, capacity_buffer_controller_enabled=True)
