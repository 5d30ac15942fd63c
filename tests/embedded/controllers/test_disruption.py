from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.controllers.live import names, play
from tests.embedded.controllers.test_daemonset import daemon_set

from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, PDBS, PODS, STATEFUL_SETS
from kubetide.ports.errors import TooManyRequests
from kubetide.testing import builders


def stateful_set(replicas):
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    return {"metadata": {"name": "db"}, "spec": spec}


PARTS = ("deployments", "replica_sets", "scheduler", "kubelets", "pdbs")


async def begin(live, replicas, **budget):
    await live.add_nodes("n1")
    await live.add(DEPLOYMENTS, builders.deployment("web", replicas=replicas))
    await live.sleep(20)
    await live.add(PDBS, builders.pdb("web", {"app": "web"}, **budget))
    await live.sleep(1)


async def budget_of(live):
    status = (await live.get(PDBS, "web")).status
    return status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed


def condition_of(pdb):
    (condition,) = pdb.status.conditions
    return condition.status, condition.reason


async def evict(live, name):
    try:
        await live.cluster.evict(namespace="shop", pod=name)
    except TooManyRequests:
        return False
    return True


@pytest.mark.parametrize(
    ("budget", "needed"),
    [
        ({"min_available": 2}, 2),
        ({"min_available": 9}, 9),
        ({"min_available": "50%"}, 4),
        ({"min_available": "1%"}, 1),
        ({"max_unavailable": 3}, 4),
        ({"max_unavailable": 9}, 0),
        ({"max_unavailable": "10%"}, 6),
        ({"max_unavailable": "30%"}, 4),
        ({"max_unavailable": "100%"}, 0),
    ],
)
def test_how_many_of_seven_pods_must_stay(budget, needed):
    """Percentages are of the Deployment's replicas and are rounded up, for minimum and maximum alike."""

    async def body(live):
        await begin(live, 7, **budget)
        assert await budget_of(live) == (7, needed, 7, max(0, 7 - needed))

    play(body, *PARTS)


def test_a_number_is_of_the_pods_that_are_there():
    """With a number as minAvailable the matching pods are expected, whoever made them; without a scale too."""

    async def body(live):
        await begin(live, 2, min_available=1)
        await live.add(PODS, builders.pod("alone", labels={"app": "web"}))
        await live.sleep(20)
        assert await budget_of(live) == (3, 1, 3, 2)

    play(body, *PARTS)


def test_pods_without_controller_are_not_expected_under_a_percentage():
    """They count as healthy, so that they can go, and not as pods that there should be."""

    async def body(live):
        await begin(live, 2, min_available="100%")
        await live.add(PODS, builders.pod("alone", labels={"app": "web"}))
        await live.sleep(20)
        assert await budget_of(live) == (2, 2, 3, 1)

    play(body, *PARTS)


def test_the_replicas_of_a_stateful_set_are_counted():
    """The budget expects the replicas in a StatefulSet's spec, and follows a change of its scale."""

    async def body(live):
        await begin(live, 2, max_unavailable=1)
        owned = await live.add(STATEFUL_SETS, stateful_set(3))
        owner = builders.owner_reference(owned, controller=True)
        await live.add(PODS, builders.pod("db-0", labels={"app": "web"}, owners=[owner]))
        await live.sleep(20)
        assert await budget_of(live) == (5, 4, 3, 0)
        await live.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await live.sleep(1)
        assert await budget_of(live) == (3, 2, 3, 1)

    play(body, *PARTS)


def test_an_owner_of_unknown_scale_allows_nothing():
    """A budget over such pods says SyncFailed, allows no eviction, and recovers when they are deleted."""

    async def body(live):
        await begin(live, 3, max_unavailable=1)
        agent = await live.add(DAEMON_SETS, daemon_set())
        owner = builders.owner_reference(agent, controller=True)
        assert condition_of(await live.get(PDBS, "web")) == ("True", "SufficientPods")
        stray = builders.pod("stray", labels={"app": "web"}, owners=[owner])
        await live.add(PODS, stray)
        await live.sleep(20)
        found = await live.get(PDBS, "web")
        assert condition_of(found) == ("False", "SyncFailed")
        assert found.status.disruptions_allowed == 0
        assert "stray" in found.status.conditions[0].message
        assert not await evict(live, names(await live.pods_now())[-1])
        await live.patch(PODS, "stray", {"metadata": {"labels": {"app": "other"}}})
        await live.sleep(1)
        assert condition_of(await live.get(PDBS, "web")) == ("True", "SufficientPods")

    play(body, *PARTS)


def test_an_eviction_that_came_to_nothing_is_believed_for_two_minutes():
    """A pod noted as disrupted that is not deleted counts as unhealthy for 2 min, and then again."""

    async def body(live):
        await begin(live, 3, min_available=2)
        first = names(await live.pods_now())[0]
        disrupted = {"disruptedPods": {first: "2026-03-02T00:00:21Z"}, "disruptionsAllowed": 0}
        await live.patch(PDBS, "web", {"status": disrupted}, subresource="status")
        await live.sleep(100)
        assert await budget_of(live) == (3, 2, 2, 0)
        await live.sleep(30)
        assert await budget_of(live) == (3, 2, 3, 1)
        assert (await live.get(PDBS, "web")).status.disrupted_pods is None

    play(body, *PARTS)


@settings(max_examples=15, deadline=None)
@given(
    replicas=st.integers(1, 6),
    least=st.integers(0, 6),
    steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.1, 1.0, 5.0])), max_size=15),
)
def test_evictions_never_leave_fewer_than_the_budget_requires(replicas, least, steps):
    """However evictions come, as many pods stay ready as the budget requires, if there ever were."""

    async def body(live):
        await begin(live, replicas, min_available=least)
        least_left = replicas
        for number, pause in steps:
            pods = await live.pods_now()
            if pods:
                await evict(live, pods[number % len(pods)].metadata.name)
            alive = [p for p in await live.pods_now() if p.metadata.deletion_timestamp is None]
            ready = [
                p
                for p in alive
                if any(c.type == "Ready" and c.status == "True" for c in p.status.conditions or ())
            ]
            least_left = min(least_left, len(ready))
            await live.sleep(pause)
        assert least_left >= min(least, replicas)

    play(body, *PARTS)
