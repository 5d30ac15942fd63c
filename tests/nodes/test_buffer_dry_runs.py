"""Pods of CapacityBuffers as the API server would admit them: with its defaults, and with what webhooks add."""

from __future__ import annotations

import pytest
from tests.nodes.live import play, replayed

from kubetide.nodes.capacity.definitions import definitions
from kubetide.objects.capacity import condition_of
from kubetide.objects.kinds import CAPACITY_BUFFERS, CUSTOM_RESOURCE_DEFINITIONS, POD_TEMPLATES, PODS
from kubetide.ports.errors import Forbidden
from kubetide.runtime.guard import Advice
from kubetide.testing import builders
from kubetide.units.time import minutes

BUFFERS = {"capacity_buffer_controller_enabled": True, "capacity_buffer_pod_injection_enabled": True}
WORKER, COPY = "worker", "capacitybuffer-room-pod-template"
NO_RIGHT = (
    'pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "default"'
)


class Admission:
    """A cluster whose API server adds a sidecar of one core to each pod, or refuses pods while it has a reason to."""

    def __init__(self, forbids=""):
        self.forbids, self.asked = forbids, 0

    def __call__(self, cluster):
        self._cluster = cluster
        return self

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def create(self, kind, body, *, namespace="", dry_run=False):
        if not dry_run:
            return await self._cluster.create(kind, body, namespace=namespace)
        self.asked += 1
        if self.forbids:
            raise Forbidden(self.forbids)
        pod = await self._cluster.create(kind, body, namespace=namespace, dry_run=True)
        sidecar = {**builders.pod_spec(cpu="1")["containers"][0], "name": "proxy"}
        return {**pod, "spec": {**pod["spec"], "containers": [*pod["spec"]["containers"], sidecar]}}


async def make_buffer(world, **spec):
    """Make a buffer, of two pods of a PodTemplate that asks for 900m, less than half of a node, unless ``spec`` says otherwise."""
    for body in definitions():
        await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    worker = {"metadata": {"name": WORKER}, "template": {"spec": builders.pod_spec(cpu="900m")}}
    await world.cluster.create(POD_TEMPLATES, worker, namespace="default")
    room = {"metadata": {"name": "room"}, "spec": spec or {"podTemplateRef": {"name": WORKER}, "replicas": 2}}
    await world.cluster.create(CAPACITY_BUFFERS, room, namespace="default")


async def ready(world):
    """Return status and message of the condition ReadyForProvisioning."""
    found = await world.cluster.get(CAPACITY_BUFFERS, "room", namespace="default")
    condition = condition_of(found.status.conditions, "ReadyForProvisioning")
    return condition.status, condition.message


async def copy(world):
    return await world.cluster.get(POD_TEMPLATES, COPY, namespace="default")


@pytest.mark.parametrize(("dry_run", "nodes"), [(True, 2), (False, 1)])
def test_what_webhooks_add_counts(dry_run, nodes):
    """A pod with its sidecar needs a node of its own; as it is written two of them share one."""
    admission = Admission()

    async def story(world):
        await make_buffer(world)
        await world.after(minutes(5))
        assert await ready(world) == ("True", "ready")
        assert len(world.nodes) == nodes
        spec = (await copy(world)).template.spec
        assert [one.name for one in spec.containers][1:] == (["proxy"] if dry_run else [])
        assert not (await world.cluster.list(PODS)).items

    world = play(story, wrap=admission, **BUFFERS, capacity_buffer_pod_dry_run_enabled=dry_run)
    assert replayed(world) > 5
    assert admission.asked == (1 if dry_run else 0)


def test_it_is_asked_again_for_each_version_of_the_template():
    """The copy follows its source, and the API server is asked once for each version."""
    admission = Admission()

    async def story(world):
        await make_buffer(world)
        await world.after(minutes(2))
        larger = {"template": {"spec": builders.pod_spec(cpu="500m")}}
        await world.cluster.patch(POD_TEMPLATES, WORKER, larger, namespace="default")
        await world.after(minutes(2))
        made = await copy(world)
        assert made.template.spec.containers[0].resources.requests["cpu"] == "500m"
        found = await world.cluster.get(CAPACITY_BUFFERS, "room", namespace="default")
        assert found.status.pod_template_generation == made.metadata.generation == 2

    assert replayed(play(story, wrap=admission, full_every=5, **BUFFERS)) > 5
    assert admission.asked == 2


def test_a_pod_that_would_be_refused():
    """The buffer is not ready and says why, and nothing is bought; it is asked again until it may be."""
    refusal = 'pods "fake-pod-x" is forbidden: exceeded quota: team'
    admission = Admission(refusal)

    async def story(world):
        await make_buffer(world)
        await world.after(minutes(1))
        said = f"Buffer not ready for provisioning: failed to create fake pod: {refusal}".replace(
            "fake-pod-x", "fake-pod"
        )
        assert await ready(world) == ("False", said)
        assert not world.nodes
        admission.forbids = ""
        await world.after(minutes(3))
        assert await ready(world) == ("True", "ready")
        assert len(world.nodes) == 2

    assert replayed(play(story, wrap=admission, full_every=7, **BUFFERS)) > 5


def test_without_the_right_to_create_pods():
    """The template is taken as it is written, and the API server is not asked again."""
    admission = Admission(NO_RIGHT)

    async def story(world):
        await make_buffer(world)
        await world.after(minutes(5))
        assert await ready(world) == ("True", "ready")
        assert len(world.nodes) == 1

    play(story, wrap=admission, **BUFFERS)
    assert admission.asked == 1


def test_advice_counts_the_template_as_it_is():
    """A run that only advises sends nothing, and says what would be bought all the same."""

    async def story(world):
        await make_buffer(world)
        await world.after(minutes(1))
        assert not world.nodes
        assert world.controller.state.capacity.buffers[0].status.replicas == 2

    world = play(story, guard=Advice(), **BUFFERS)
    assert any(reason.code == "IncreaseAdvised" for reason in world.recorder.reasons)
    assert replayed(world) > 3


async def make_buffer_of_web(world, *, running):
    """Make a Deployment with so many pods, and a buffer for one more of them."""
    await world.deploy(replicas=running, cpu="1")
    web = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    await make_buffer(world, scalableRef=web, replicas=1)


def test_a_pod_that_runs_is_copied_as_it_is():
    """It has been admitted already."""
    admission = Admission()

    async def story(world):
        await make_buffer_of_web(world, running=1)
        await world.after(minutes(5))
        assert await ready(world) == ("True", "ready")
        assert len((await copy(world)).template.spec.containers) == 1

    play(story, wrap=admission, **BUFFERS)
    assert not admission.asked


def test_a_workload_without_pods_is_admitted():
    """Its own template becomes what the API server would make of it."""
    admission = Admission()

    async def story(world):
        await make_buffer_of_web(world, running=0)
        await world.after(minutes(2))
        assert await ready(world) == ("True", "ready")
        assert [one.name for one in (await copy(world)).template.spec.containers][1:] == ["proxy"]

    play(story, wrap=admission, **BUFFERS)
    assert admission.asked == 1


def test_a_pod_that_is_refused_again_and_again_is_said_once():
    """The server makes up another name for each pod that it is asked about; the buffer's condition stays."""

    async def story(world):
        await make_buffer(world)
        worker = {"template": {"spec": {"priority": -100}}}
        await world.cluster.patch(POD_TEMPLATES, WORKER, worker, namespace="default")
        await world.after(minutes(1))
        first = await world.cluster.get(CAPACITY_BUFFERS, "room", namespace="default")
        assert (await ready(world))[1].startswith(
            'Buffer not ready for provisioning: failed to create fake pod: pods "fake-pod" is forbidden: '
        )
        await world.after(minutes(2))
        later = await world.cluster.get(CAPACITY_BUFFERS, "room", namespace="default")
        assert later.metadata.resource_version == first.metadata.resource_version

    play(story, **BUFFERS)
