"""Groups that the loop creates for pods and deletes when they are empty (--node-autoprovisioning-enabled)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.nodes.live import SHORT, play, replayed

from kubetide.embedded.cloud import CallFailure, CloudFaults, GroupSpec, Window
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.explainers import EXPLAINERS
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.settings import Settings
from kubetide.ports.cloud import Cloud, NewGroup
from kubetide.ports.errors import CloudUnsupported
from kubetide.runtime.clouds import open_cloud
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import after, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")
ON = {"node_autoprovisioning_enabled": True, **SHORT}


def offer(kind, zone="zone-a", most=5, **fields):
    name = f"auto-{kind.replace('.', '-')}-{zone}"
    return GroupSpec(name=name, instance_type=kind, max_size=most, zones=(zone,), **fields)


SMALL, LARGE, ROOMY = offer("m5.large"), offer("m5.2xlarge"), offer("r5.xlarge")


def selecting(**labels):
    return {"spec": {"template": {"spec": {"nodeSelector": labels}}}}


def reported(world, code):
    return [one.subject for one in world.recorder.reasons if one.code == code]


def ids(world):
    return sorted(world.controller.state.groups)


def test_a_group_is_created_used_and_deleted():
    """Without any group pods get one of their size; it goes once it has been empty for the unneeded time."""

    async def story(world):
        await world.deploy("big", replicas=2, cpu="3", memory="2Gi")
        await world.after(minutes(4))
        assert ids(world) == ["auto-m5-2xlarge-zone-a"]
        assert (len(world.nodes), world.pending) == (1, [])
        [made] = world.controller.state.memory.made_groups.values()
        assert (made.pods, made.candidates) == (2, 2)
        lines = explain_group(world.controller.state, "auto-m5-2xlarge-zone-a", world.clock.now()).created
        assert "for 2 pods" in lines[0]
        await world.scale("big", 0)
        await world.after(minutes(6))
        assert world.nodes == []
        assert ids(world) == ["auto-m5-2xlarge-zone-a"]
        await world.after(minutes(4))
        assert ids(world) == []
        assert await world.events("CreatedNodeGroup") == [
            "NodeAutoprovisioning: created new node group auto-m5-2xlarge-zone-a"
        ]
        assert await world.events("DeletedNodeGroup") == [
            "NodeAutoprovisioning: removed node group auto-m5-2xlarge-zone-a"
        ]

    world = play(story, (), creatable=(SMALL, LARGE), **ON)
    assert reported(world, "GroupDeleted") == ["auto-m5-2xlarge-zone-a"]
    memory = world.controller.state.memory
    assert (memory.made_groups, memory.empty_since) == ({}, {})
    replayed(world)


def test_the_provider_is_not_asked_without_the_flag():
    """Without the flag no candidate is requested, none is recorded, and the pods wait."""

    async def story(world):
        await world.deploy("web", replicas=1)
        await world.after(minutes(2))
        assert len(world.pending) == 1

    world = play(story, (), creatable=(SMALL,))
    assert not any(b"candidates" in line or b"auto-" in line for line in world.recorder.lines)


def test_a_candidate_that_cannot_be_created_is_left_out_for_a_time():
    """After a refusal the next tick requests another candidate, and the refused one is backed off."""
    broken = CallFailure(Window(START, group=SMALL.name), calls=("create_group",), message="no right")

    async def story(world):
        await world.deploy("web", replicas=1, cpu="1500m")
        await world.after(minutes(3))
        assert ids(world) == [LARGE.name]
        said = f"NodeAutoprovisioning: attempt to create node group {SMALL.name} failed: "
        assert await world.events("FailedToCreateNodeGroup") == [f"{said}create_group {SMALL.name}: no right"]
        assert list(world.controller.state.memory.backoff) == [SMALL.name]

    faults = CloudFaults(call_failures=(broken,))
    world = play(story, (), creatable=(SMALL, LARGE), faults=faults, **ON)
    assert reported(world, "GroupNotCreated") == [SMALL.name]
    assert reported(world, "IncreaseRefused") == []
    replayed(world)


@pytest.mark.parametrize("expander", ["least-waste", "least-cost"])
def test_no_more_groups_than_the_limit(expander):
    """The limit counts groups that exist and were created; what they cannot hold waits."""

    async def story(world):
        await world.deploy("cpu", replicas=3, cpu="1500m", memory="256Mi")
        await world.deploy("memory", replicas=3, cpu="200m", memory="12Gi")
        await world.after(minutes(5))
        assert len(ids(world)) == 1

    world = play(
        story,
        (),
        creatable=(offer("c5.large"), ROOMY),
        expander=expander,
        max_autoprovisioned_node_group_count=1,
        **ON,
    )
    assert len(reported(world, "GroupCreated")) == 1
    replayed(world)


def test_several_groups_at_once():
    """The expander that plans for all groups at once may create several in one tick."""

    async def story(world):
        await world.deploy("cpu", replicas=3, cpu="1800m", memory="256Mi")
        await world.deploy("memory", replicas=3, cpu="200m", memory="13Gi")
        await world.after(minutes(5))
        assert world.pending == []

    world = play(
        story, (), creatable=(offer("c5.large"), offer("r5.large", most=9)), expander="least-cost", **ON
    )
    [first] = {
        one.tick for one in world.recorder.records for why in one.reasons if why.code == "GroupCreated"
    }
    [record] = [one for one in world.recorder.records if one.tick == first and one.phase == 0]
    assert bytes(record.commands).count(b"createGroup") == 2
    replayed(world)


def test_groups_of_people_stay_and_are_used_first():
    """A group like the candidate is not made twice while it has capacity; one that a person made is never deleted."""
    mine = GroupSpec(name="mine", instance_type="m5.large", max_size=1)

    async def story(world):
        await world.deploy("web", replicas=1, cpu="1500m")
        await world.after(minutes(3))
        assert ids(world) == ["mine"]
        await world.scale("web", 2)
        await world.after(minutes(3))
        assert ids(world) == [SMALL.name, "mine"]
        await world.scale("web", 0)
        await world.after(minutes(15))
        assert (ids(world), world.nodes) == (["mine"], [])

    world = play(story, (mine,), creatable=(SMALL,), **ON)
    replayed(world)


def test_labels_that_pods_select():
    """A group gets the labels of its pods' node selector, but none of the domains of Kubernetes."""

    async def story(world):
        await world.deploy("web", replicas=1, extra=selecting(team="shop"))
        await world.deploy("odd", replicas=1, extra=selecting(**{"node.kubernetes.io/odd": "1"}))
        await world.after(minutes(4))
        [name] = ids(world)
        assert name.startswith(f"{SMALL.name}-")
        [node] = world.informers["nodes"].objects.values()
        assert node.metadata.labels["team"] == "shop"
        assert [one[:3] for one in world.pending] == ["odd"]
        [pod] = world.pending
        assert explain_pod(world.controller.state, ("default", pod), world.clock.now()).status == "refused"

    world = play(story, (), creatable=(SMALL,), **ON)
    replayed(world)


def test_a_full_group_gets_another_beside_it():
    """A candidate whose group is full is made again under another id."""

    async def story(world):
        await world.deploy("web", replicas=3, cpu="1500m")
        await world.after(minutes(5))
        assert ids(world) == [f"{SMALL.name}{end}" for end in ("", "-2", "-3")]
        assert world.pending == []

    play(story, (), creatable=(offer("m5.large", most=1),), **ON)


class LostLease:
    """A guard that refuses from the moment on when a group exists, for some minutes."""

    world = None

    def refusal(self):
        made = self.world is not None and self.world.cloud.counts()
        return "the lease was lost" if made and self.world.clock.now() < after(START, minutes(3)) else ""


def test_a_lease_lost_between_creation_and_increase():
    """The group that was created is there for whoever acts next: it is used, and no second one is created."""
    guard = LostLease()

    async def story(world):
        guard.world = world
        await world.deploy("web", replicas=1)
        await world.after(minutes(2))
        assert (ids(world), world.nodes) == ([SMALL.name], [])
        await world.after(minutes(4))
        assert (ids(world), len(world.nodes), world.pending) == ([SMALL.name], 1, [])

    world = play(story, (), creatable=(SMALL,), guard=guard, **ON)
    assert reported(world, "GroupCreated") == [SMALL.name]
    replayed(world)


def test_a_run_that_only_advises_creates_nothing():
    """Creation and deletion are reported as advice."""

    class Never:
        def refusal(self):
            return "advises"

    async def story(world):
        await world.deploy("web", replicas=1)
        await world.after(minutes(2))
        assert await world.cloud.refresh() == ()

    world = play(story, (), creatable=(SMALL,), guard=Never(), **ON)
    assert reported(world, "GroupCreationAdvised") == [SMALL.name]
    assert reported(world, "IncreaseAdvised") == [SMALL.name]
    replayed(world)


def test_an_empty_group_of_an_earlier_process_goes():
    """Groups that an earlier process created are recognized by the cloud's mark, and deleted when they are empty."""

    async def story(world):
        await world.cloud.create_group(NewGroup(id="left", max_size=3, instance_type="m5.large"))
        await world.after(minutes(2))
        [line, _] = explain_group(world.controller.state, "left", world.clock.now()).created
        assert "earlier process" in line
        await world.after(minutes(3))
        assert ids(world) == []

    replayed(play(story, (), **ON))


def test_a_group_that_cannot_be_deleted_is_tried_again_later():
    """A refusal to delete is reported once in each unneeded time."""
    broken = CallFailure(Window(START, after(START, minutes(8))), calls=("delete_group",), message="busy")

    async def story(world):
        await world.cloud.create_group(NewGroup(id="left", max_size=3, instance_type="m5.large"))
        await world.after(minutes(8))
        assert len(reported(world, "GroupNotDeleted")) == 2
        await world.after(minutes(2))
        assert ids(world) == []

    replayed(play(story, (), faults=CloudFaults(call_failures=(broken,)), **ON))


def test_explain_pod_names_groups_that_could_be_created():
    """A pod's explanation says which groups could be created for it, and of the others why not."""
    lines = []

    async def story(world):
        await world.deploy("big", replicas=1, cpu="3", memory="2Gi")
        await asyncio.sleep(0)
        while not world.controller.state.pending:
            await world.after(seconds(1))
        core = type("Core", (), {"state": world.controller.state})
        [pod] = world.pending
        found = next(one for one in EXPLAINERS if one.kind == "pod")
        now = after(world.clock.now(), seconds(5))
        lines.extend(found.lines(core, f"default/{pod}", now, ""))

    play(story, (), creatable=(SMALL, LARGE), **ON)
    assert f"a group that would be created, {LARGE.name}, would take it" in lines[0].lower()
    assert f"group to be created, {LARGE.name}: would take it" in lines
    assert any(line.startswith(f"group to be created, {SMALL.name}: no, ") for line in lines)


def test_a_negative_limit_is_refused():
    """The error names the flag and the fix."""
    with pytest.raises(ValueError, match="--max-autoprovisioned-node-group-count=-1: give 0 or more"):
        Settings(max_autoprovisioned_node_group_count=-1)


class Shelf(Cloud):
    """A provider that cannot create groups."""

    name = "shelf"


@asynccontextmanager
async def shelf(_context):
    yield Shelf()


def test_a_provider_that_cannot_create_groups_is_reported_at_the_start():
    """The error names the flag and the provider; without the flag the same provider is opened."""

    async def main(clock):
        run = RunSettings(cloud_provider=f"{__name__}:shelf")
        async with open_cloud(run, Settings(), clock) as cloud:
            assert await cloud.group_candidates() == ()
        with pytest.raises(
            CloudUnsupported, match=r"--node-autoprovisioning-enabled: the provider .*:shelf cannot"
        ):
            async with open_cloud(run, Settings(node_autoprovisioning_enabled=True), clock):
                pass

    run_virtual(main, start=START)


def explained(world):
    """Return what ``kubetide explain pod`` says of the first pod that waits, as the next tick would decide."""
    core = type("Core", (), {"state": world.controller.state})
    found = next(one for one in EXPLAINERS if one.kind == "pod")
    return found.lines(core, f"default/{world.pending[0]}", after(world.clock.now(), seconds(5)), "")


def test_machines_with_gpus_are_for_pods_that_request_them():
    """A GPU machine is no candidate for plain pods, however well it fits; for a pod that requests a GPU it is."""
    gpu = offer("g4dn.xlarge")

    async def story(world):
        await world.deploy("plain", replicas=1, cpu="3500m", memory="14Gi")
        await world.after(minutes(3))
        assert ids(world) == []
        assert (
            "no group could be created: each is like a group that may still grow, or has devices"
            in "\n".join(explained(world))
        )
        gpus = {"nvidia.com/gpu": "1"}
        main = {"name": "main", "image": "train", "resources": {"requests": gpus, "limits": gpus}}
        limits = {"containers": [main]}
        await world.deploy("train", replicas=1, extra={"spec": {"template": {"spec": limits}}})
        await world.after(minutes(4))
        assert ids(world) == [gpu.name]

    replayed(play(story, (), creatable=(gpu,), **ON))


def test_explain_pod_names_the_limit():
    """A pod that waits because no more groups may be created gets that as its reason."""

    async def story(world):
        await world.deploy("web", replicas=1)
        await world.after(minutes(2))
        assert "no group could be created: --max-autoprovisioned-node-group-count=0 is reached" in explained(
            world
        )

    play(story, (), creatable=(SMALL,), max_autoprovisioned_node_group_count=0, **ON)
