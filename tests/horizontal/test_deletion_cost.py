"""Pods that a scale-in is to choose: which get marks, and when these come off again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.horizontal import worlds
from tests.horizontal.running import play

from kubetide.horizontal.options.annotations import PREFIX
from kubetide.horizontal.options.deletion_cost import ANNOTATION, costs_of_idlest
from kubetide.objects.kinds import DEPLOYMENTS, PODS
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
        marked = [pod.metadata.name for pod in pods if ANNOTATION in (pod.metadata.annotations or {})]
        assert marked == (["web-0", "web-1"] if lost else [])

    play(story)
