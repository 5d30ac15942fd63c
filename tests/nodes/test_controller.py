"""The node controller on a living embedded cluster, in virtual time."""

from __future__ import annotations

import pytest
from tests.nodes.live import SHORT, START, play, replayed

from kubetide.embedded.cloud import CallFailure, CloudFaults, GroupSpec, InstanceType, Window
from kubetide.objects.capacity import condition_of
from kubetide.objects.kinds import (
    PODS,
    PROVISIONING_REQUESTS,
)
from kubetide.plan.board import Intent, Workload
from kubetide.units.time import after, between, minutes, seconds, to_seconds

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
    """From zero nodes a pod too large for the catalogue's amounts is refused; one real node of the type corrects them."""
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


@pytest.mark.parametrize(("prompt", "grown"), [(False, 0), (True, 1)])
@pytest.mark.parametrize(("delay", "waited"), [(0, 3), (4, 6)])
def test_nodes_are_requested_once_pods_are_old_enough(prompt, grown, delay, waited):
    """A pod is too new in the tick that it triggers, at 101 s; the next tick by the scan interval is at 111 s."""

    async def story(world):
        await world.after(seconds(101))
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(seconds(waited))
        assert len(await world.events("TriggeredScaleUp")) == grown
        await world.after(seconds(9 - waited))
        assert len(await world.events("TriggeredScaleUp")) == grown
        await world.after(seconds(3))
        assert len(await world.events("TriggeredScaleUp")) == 1

    assert replayed(play(story, prompt_scale_up=prompt, new_pod_scale_up_delay=seconds(delay)))


def test_a_scan_interval_begins_with_the_tick_before():
    """A pod at 15 s has a tick of its own; its scale-up is one interval later, two ticks follow that, then one more interval."""
    groups = (
        GroupSpec(name="a", instance_type="m5.large", max_size=5, labels={"pool": "a"}),
        GroupSpec(name="b", instance_type="m5.xlarge", max_size=5, labels={"pool": "b"}),
        GroupSpec(name="c", instance_type="m5.2xlarge", max_size=5, labels={"pool": "b"}),
    )
    refused = CallFailure(Window(START, group="b"), calls=("increase_size",))

    async def story(world):
        await world.after(seconds(15))
        for name, replicas in (("a", 2), ("b", 1)):
            chosen = {"spec": {"template": {"spec": {"nodeSelector": {"pool": name}}}}}
            await world.deploy(name, replicas=replicas, cpu="1500m", extra=chosen)
        await world.after(seconds(25))

    world = play(story, groups, faults=CloudFaults(call_failures=(refused,)))
    records = world.recorder.records
    ticks = [to_seconds(between(START, one.now)) for one in records if one.phase == 0]
    assert ticks == [0, 10, 15, 25, 25, 25, 25, 25, 35]
    # Group b refuses in the second tick at 25 s; the third, which the increase in the first brings about, asks c.
    grown = [(one.code, one.subject) for one in world.recorder.reasons if one.code.startswith("Increase")]
    assert grown == [("Increased", "a"), ("IncreaseRefused", "b"), ("Increased", "c")]


@pytest.mark.parametrize(("eager", "answered"), [(False, 2), (True, 4)])
def test_an_answered_request_triggers_the_next_tick_at_once(eager, answered):
    """With frequent loops requests are answered in one tick after another; without, one each scan interval."""

    async def story(world):
        await world.define_capacity_kinds()
        await world.add_pod_template("worker", "100m")
        spec = {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 1}],
        }
        for at in range(4):
            made = {"metadata": {"name": f"r{at}"}, "spec": spec}
            await world.cluster.create(PROVISIONING_REQUESTS, made, namespace="default")
        await world.after(seconds(25))
        found = (await world.cluster.list(PROVISIONING_REQUESTS)).items
        assert (
            sum(condition_of(one.status.conditions, "Provisioned") is not None for one in found) == answered
        )

    world = play(story, enable_provisioning_requests=True, frequent_loops_enabled=eager)
    assert replayed(world) > 3


def test_wrong_settings_are_refused_at_once():
    """An expander or a demand source that does not exist stops the controller from being made."""
    with pytest.raises(ValueError, match="Expander cheap not supported"):
        play(None, expander="cheap")
    with pytest.raises(ValueError, match="there is no source 'wishes'"):
        play(None, demand_sources=("wishes",))


def test_what_groups_answer_to_pods_that_wait_is_recorded_once():
    """Two groups refuse two kinds of pods, tick after tick: their four answers are recorded by the first tick alone."""
    groups = (
        GroupSpec(name="a", instance_type="m5.large", max_size=5),
        GroupSpec(name="b", instance_type="m5.xlarge", max_size=5),
    )

    async def story(world):
        await world.deploy("huge", replicas=1, cpu="64")
        await world.deploy("vast", replicas=1, cpu="96")
        await world.after(minutes(2))

    records = play(story, groups).recorder.records
    said = [one for one in records if any(each.code == "GroupRefuses" for each in one.reasons)]
    answers = [(one.subject, one.fields["pod"][:12]) for one in said[0].reasons if one.code == "GroupRefuses"]
    assert sorted(answers) == [
        ("a", "default/huge"),
        ("a", "default/vast"),
        ("b", "default/huge"),
        ("b", "default/vast"),
    ]
    assert [one.full for one in said[1:]] == [True] * len(said[1:])
    later = [one for one in records if one.now > said[0].now and one.phase == 0 and not one.full]
    assert len(later) > 5
    assert all(one.repeated >= 4 for one in later)
