"""The node controller on a living embedded cluster, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
import yaml
from tests.nodes.live import SHORT, START, play, replayed

from kubetide.embedded.cloud import CloudFaults, GroupSpec, InstanceType, Window
from kubetide.nodes.capacity.definitions import definitions
from kubetide.objects.capacity import condition_of
from kubetide.objects.kinds import (
    CAPACITY_BUFFERS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
    RESOURCE_QUOTAS,
)
from kubetide.plan.board import Intent, Workload
from kubetide.ports.errors import ApiError, Forbidden
from kubetide.testing import builders
from kubetide.units.time import after, minutes, seconds

WEB = Workload("default", "Deployment", "web")


def test_pending_pods_get_nodes():
    """Pods that fit nowhere lead to new nodes, and run on them."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        assert world.pending == []
        assert len(world.nodes) == 6
        assert any(
            "pod triggered scale-up: [{small 0->6 (max: 10)}]" in m
            for m in await world.events("TriggeredScaleUp")
        )

    play(story)


class SlowEvents:
    """A cluster on which each write of an event takes a fifth of a second, as at five requests a second."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def create(self, kind, body, **arguments):
        if kind is EVENTS:
            await asyncio.sleep(0.2)
        return await self._cluster.create(kind, body, **arguments)


def test_an_object_gets_one_event_of_a_reason_in_five_minutes():
    """As upstream a pod that waits is told so now and then, not each tick; each scale-up stands at the status object."""

    async def story(world):
        await world.deploy("huge", replicas=1, cpu="64")
        await world.after(minutes(2))
        for name in ("one", "two", "three"):
            await world.deploy(name, replicas=1, cpu="1500m")
            await world.after(seconds(30))
        found = (await world.cluster.list(EVENTS)).items
        assert [event.count for event in found if event.reason == "NotTriggerScaleUp"] == [1]
        await world.after(minutes(5))
        found = (await world.cluster.list(EVENTS)).items
        [again] = [event.count for event in found if event.reason == "NotTriggerScaleUp"]
        assert again > 20, "it counts those that were not written"
        assert len(await world.events("ScaledUpGroup")) == 6

    play(story)


def test_events_of_many_pods_hold_up_no_tick():
    """While a hundred pods are told that no group helps them, the loop ticks on and buys for others."""

    async def story(world):
        await world.deploy("huge", replicas=100, cpu="64")
        await world.after(seconds(8))
        await world.deploy("web", replicas=1, cpu="1500m")
        await world.after(seconds(10))
        assert "Chosen" in {one.code for one in world.recorder.reasons}
        assert len(await world.events("NotTriggerScaleUp")) < 100
        await world.after(seconds(30))
        assert len(await world.events("NotTriggerScaleUp")) == 100

    play(story, wrap=SlowEvents)


def test_idle_nodes_go():
    """Nodes that are not needed any more are drained and deleted, and their machines end."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        await world.scale("web", 1)
        await world.after(minutes(12))
        assert len(world.nodes) == 1
        assert world.pending == []

    world = play(story, **SHORT)
    assert replayed(world) > 50


def test_records_of_a_bad_hour_are_decided_again():
    """With stock-outs, failing calls and machines that never join, the records still replay to the same bytes."""
    groups = (
        GroupSpec(name="first", instance_type="m5.large", max_size=6, join_failure=0.4),
        GroupSpec(name="second", instance_type="m5.xlarge", max_size=6),
    )
    out = Window(START, after(START, minutes(4)), group="first")
    faults = CloudFaults(stock_outs=(out,))

    async def story(world):
        await world.deploy(replicas=5, cpu="1500m")
        await world.after(minutes(25))
        await world.scale("web", 9)
        await world.after(minutes(25))
        await world.scale("web", 1)
        await world.after(minutes(30))
        assert world.pending == []

    world = play(story, groups, faults=faults, full_every=7, **SHORT)
    assert replayed(world) > 200
    assert len(world.nodes) <= 2


def test_a_list_that_lost_many_pods_holds_removal():
    """When a new list lacks most pods at once nothing is deleted for a while; later it is."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(6))
        world.cluster.expire_watches()
        for _, name in sorted(world.informers["pods"].objects):
            await world.cluster.delete(PODS, name, namespace="default", grace_period_s=0)
        await world.scale("web", 0)
        await world.after(minutes(8))
        assert len(world.nodes) == 6
        await world.after(minutes(8))
        assert world.nodes == []

    play(story, **SHORT)


def test_wrong_catalogue_is_corrected_by_one_machine():
    """Pods too large for the catalogue's word are refused from zero; one real node of the type corrects it."""
    wrong = InstanceType(
        name="c5d.large",
        cpu_milli=2000,
        memory_bytes=16 << 30,
        catalogue_memory_bytes=4 << 30,
        price_per_hour=0.096,
    )
    groups = (GroupSpec(name="c5d", instance_type="c5d.large", max_size=5),)

    async def story(world):
        await world.deploy("big", replicas=1, memory="8Gi")
        await world.after(minutes(3))
        assert world.nodes == []
        assert any("Insufficient memory" in text for text in await world.events("NotTriggerScaleUp"))
        await world.deploy("little", replicas=1, cpu="1500m")
        await world.after(minutes(8))
        assert world.pending == []

    play(story, groups, catalogue={"c5d.large": wrong})


def test_intents_of_the_board_are_served_and_answered():
    """Demand on the board is bought before the pods exist, and the missing part is answered meanwhile."""

    async def story(world):
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(minutes(4))
        world.board.announce(Intent(workload=WEB, replicas=3, due=world.clock.now(), source="horizontal"))
        await world.after(seconds(15))
        assert [(one.workload, one.missing) for one in world.board.answers()] == [(WEB, 2)]
        await world.scale("web", 3)
        await world.after(minutes(4))
        assert world.pending == []
        assert world.board.answers() == ()

    play(story, demand_sources=("pending", "intents"))


def test_status_object_is_written():
    """The status ConfigMap says how many nodes are ready."""

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        assert "        ready: 2\n" in await world.status()
        await world.controller.close()

    play(story)


def test_until_the_first_tick_the_status_object_says_that_the_loop_begins():
    """What an earlier process left is not taken for the present while the cloud or the API server does not answer."""
    left = {
        "metadata": {"name": "cluster-autoscaler-status"},
        "data": {"status": "autoscalerStatus: Running\n"},
    }

    async def story(world):
        body = yaml.safe_load(await world.status())
        assert body["autoscalerStatus"] == "Running"
        await world.cluster.patch(CONFIG_MAPS, "cluster-autoscaler-status", left, namespace="kube-system")
        await world.controller.synced()
        body = yaml.safe_load(await world.status())
        assert (body["autoscalerStatus"], body["clusterWide"]["health"]["lastProbeTime"]) == (
            "Initializing",
            None,
        )
        assert "message" not in body
        assert body["time"] == "2026-03-02 08:00:05 +0000 UTC"
        await world.after(minutes(1))
        assert yaml.safe_load(await world.status())["autoscalerStatus"] == "Running"

    async def begun(world):
        await world.after(seconds(5))
        await story(world)

    play(begun)


def test_a_status_object_that_others_write_is_left_alone():
    """Without --write-status-configmap the object is neither written nor deleted at the end: another autoscaler may own it."""
    body = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": "theirs"}}

    async def story(world):
        await world.cluster.create(CONFIG_MAPS, body, namespace="kube-system")
        await world.after(minutes(1))
        await world.controller.close()
        assert await world.status() == "theirs"

    play(story, write_status_configmap=False)


@pytest.mark.parametrize(("prompt", "grown"), [(False, 0), (True, 1)])
@pytest.mark.parametrize(("delay", "waited"), [(0, 3), (4, 6)])
def test_nodes_are_asked_for_once_pods_are_old_enough(prompt, grown, delay, waited):
    """A pod is too new in the tick that it brings about, at 101 s; the next one by the scan interval is at 110 s."""

    async def story(world):
        await world.after(seconds(101))
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(seconds(waited))
        assert len(await world.events("TriggeredScaleUp")) == grown
        await world.after(seconds(7))
        assert len(await world.events("TriggeredScaleUp")) == 1

    assert replayed(play(story, prompt_scale_up=prompt, new_pod_scale_up_delay=seconds(delay)))


@pytest.mark.parametrize(("eager", "answered"), [(False, 2), (True, 4)])
def test_an_answered_request_asks_for_the_next_tick_at_once(eager, answered):
    """With frequent loops requests are answered one tick after another; else one each period."""
    kinds = (POD_TEMPLATES, PROVISIONING_REQUESTS)

    async def story(world):
        for body in definitions():
            await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        worker = {"metadata": {"name": "worker"}, "template": {"spec": builders.pod_spec(cpu="100m")}}
        await world.cluster.create(kinds[0], worker, namespace="default")
        spec = {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 1}],
        }
        for at in range(4):
            made = {"metadata": {"name": f"r{at}"}, "spec": spec}
            await world.cluster.create(kinds[1], made, namespace="default")
        await world.after(seconds(25))
        found = (await world.cluster.list(kinds[1])).items
        assert (
            sum(condition_of(one.status.conditions, "Provisioned") is not None for one in found) == answered
        )

    world = play(story, enable_provisioning_requests=True, frequent_loops_enabled=eager)
    assert replayed(world) > 3


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
        for body in definitions():
            await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
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


class NoQuotas:
    """A cluster that refuses to list ResourceQuotas, as RBAC refuses it."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def list(self, kind, **where):
        if kind is RESOURCE_QUOTAS:
            raise Forbidden('resourcequotas is forbidden: User "x" cannot list resource "resourcequotas"')
        return await self._cluster.list(kind, **where)


async def set_quota(world, hard):
    status = {"status": {"hard": hard, "used": {}}}
    await world.cluster.patch(RESOURCE_QUOTAS, "team", status, namespace="default", subresource="status")


async def make_buffer_in_quota(world):
    """Make a buffer of five pods of a node each, and a quota that leaves two."""
    for body in definitions():
        await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    await world.cluster.create(RESOURCE_QUOTAS, {"metadata": {"name": "team"}}, namespace="default")
    await set_quota(world, {"requests.cpu": "3"})
    worker = {"metadata": {"name": "worker"}, "template": {"spec": builders.pod_spec(cpu="1500m")}}
    await world.cluster.create(POD_TEMPLATES, worker, namespace="default")
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
    """The loop goes on, all of the buffer is bought, and nothing but the quotas is unread."""

    async def story(world):
        await make_buffer_in_quota(world)
        await world.after(minutes(5))
        assert len(world.nodes) == 5
        assert world.controller.state.capacity.unread == (RESOURCE_QUOTAS.plural,)

    assert replayed(play(story, wrap=NoQuotas, **BUFFERS)) > 5


def test_a_template_that_was_there_before_becomes_the_buffer_s():
    """A buffer owns the template that it takes over, as upstream, so that both go together."""
    name = "capacitybuffer-room-pod-template"

    async def story(world):
        for body in definitions():
            await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        for named, cpu in (("worker", "2"), (name, "1")):
            made = {"metadata": {"name": named}, "template": {"spec": builders.pod_spec(cpu=cpu)}}
            await world.cluster.create(POD_TEMPLATES, made, namespace="default")
        room = {"metadata": {"name": "room"}, "spec": {"podTemplateRef": {"name": "worker"}, "replicas": 1}}
        uid = (await world.cluster.create(CAPACITY_BUFFERS, room, namespace="default")).metadata.uid
        await world.after(minutes(1))
        taken = await world.cluster.get(POD_TEMPLATES, name, namespace="default")
        assert taken.template.spec.containers[0].resources.requests["cpu"] == "2"
        assert [(one.name, one.uid) for one in taken.metadata.owner_references or ()] == [("room", uid)]

    play(story, capacity_buffer_controller_enabled=True)


def test_wrong_settings_are_refused_at_once():
    """An expander or a demand source that does not exist stops the controller from being made."""
    with pytest.raises(ValueError, match="Expander cheap not supported"):
        play(None, expander="cheap")
    with pytest.raises(ValueError, match="there is no source 'wishes'"):
        play(None, demand_sources=("wishes",))
