"""Pods that a scale-in is to choose: which get marks, and when these come off again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.horizontal import worlds
from tests.horizontal.running import play

from kubetide.horizontal.facts.views import view_of_pod
from kubetide.horizontal.options.annotations import PREFIX
from kubetide.horizontal.options.deletion_cost import costs_of_idlest, marks
from kubetide.horizontal.options.emptiest_node import costs_of_emptiest
from kubetide.objects.kinds import DEPLOYMENTS, PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import DELETION_COST, Pod
from kubetide.ports.errors import Forbidden
from kubetide.units.time import minutes


@given(
    usage=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 9)),
    leaving=st.integers(-1, 5),
)
def test_the_idlest_get_the_lowest_costs(usage, leaving):
    """As many pods as leave are marked below zero, and none that is marked uses more than one that is not."""
    costs = dict(costs_of_idlest([worlds.pod(name) for name in sorted(usage)], usage, leaving))
    assert len(costs) == min(max(leaving, 0), len(usage))
    assert sorted(costs.values()) == list(range(-len(costs), 0))
    for pod, cost in costs.items():
        for other in usage:
            if usage[other] < usage[pod]:
                assert costs[other] < cost


def test_pods_that_go_anyway_get_no_costs():
    """Pods that are being deleted or have ended are none of the replicas; those not ready go first, and count."""
    pods = [
        worlds.pod("busy"),
        worlds.pod("idle"),
        worlds.pod("going", deleting=True),
        worlds.pod("evicted", phase="Failed"),
        worlds.pod("starting", ready="False"),
    ]
    usage = {"busy": 90, "idle": 50, "going": 1, "starting": 2}
    assert costs_of_idlest(pods, usage, 1) == ()
    assert costs_of_idlest(pods, usage, 2) == (("idle", -1),)


@pytest.mark.parametrize(
    ("annotations", "own"),
    [
        (None, None),
        ({DELETION_COST: "100"}, 100),
        ({DELETION_COST: "-1"}, -1),
        ({DELETION_COST: "+1"}, 0),
        (marks(-2), None),
        ({**marks(-2), DELETION_COST: "7"}, 7),
        ({**marks(-2), DELETION_COST: "-1"}, -1),
    ],
)
def test_a_cost_that_was_not_given_here_is_somebody_elses(annotations, own):
    """A mark is known by its twin; a person may write over it at any time."""
    assert view_of_pod(Pod(metadata=ObjectMeta(name="web-0", annotations=annotations))).own_cost == own


def test_a_pod_keeps_a_cost_that_it_has_of_its_own():
    """It gets no mark, however idle; one below 0 goes first, so that a mark less is needed."""
    usage = {"idle": 1, "kept": 2, "cheap": 3, "busy": 90}
    pods = [
        worlds.pod("idle", node="n"),
        worlds.pod("kept", node="n", own_cost=100),
        worlds.pod("cheap", node="n", own_cost=-50),
        worlds.pod("busy", node="n"),
    ]
    for costs in (
        lambda leaving: costs_of_idlest(pods, usage, leaving),
        lambda n: costs_of_emptiest(pods, {}, n),
    ):
        assert {name for name, _ in costs(1)} == set()
        assert len(costs(2)) == 1
        assert {name for name, _ in costs(4)} == {"idle", "busy"}
    assert costs_of_idlest(pods, usage, 2) == (("idle", -1),)


@pytest.mark.parametrize("lost", [False, True])
def test_a_refused_scale_in_takes_its_marks_off(lost):
    """They would compete with those of the next one; where only the answer was lost they stay."""

    async def story(world):
        world.usage.milli = 10
        extra = {"metadata": {"annotations": {PREFIX + "idlest-first": "true"}}}
        await world.add(replicas=3, extra=extra)

        class Refusing:
            async def before(self, request):
                if request.subresource == "scale" and request.verb == "replace":
                    if lost:
                        scaled = {"spec": {"replicas": 1}}
                        await quiet.patch(DEPLOYMENTS, "web", scaled, namespace="default")
                    raise Forbidden("no")

        quiet = world.cluster.client()
        world.cluster.faults = Refusing()
        async with world.running():
            await world.clock.sleep(minutes(6))
            assert "SucceededRescale" not in {one for one, _, _ in await world.events()}
        pods = (await world.cluster.list(PODS, namespace="default")).items
        marked = [pod.metadata.name for pod in pods if DELETION_COST in (pod.metadata.annotations or {})]
        assert marked == (["web-0", "web-1"] if lost else [])

    play(story)
