"""Pods that go because of NoExecute taints; the timelines ``evicting-taint`` and ``silent-node`` are recorded."""

from __future__ import annotations

import pytest
from tests.embedded.controllers.live import Failing, play

from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import pod_condition
from kubetide.testing import builders

OUT = {"key": "out", "effect": "NoExecute"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
PARTS = ("scheduler", "kubelets", "taints")


def tolerating(*tolerations):
    return builders.pod("p", extra={"spec": {"tolerations": list(tolerations)}})


def toleration(key="out", seconds=None):
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


async def begin(live, pod):
    await live.add_nodes("n1")
    await live.add(PODS, pod)
    await live.sleep(10)


async def taint(live, *taints):
    await live.cluster.patch(NODES, "n1", {"spec": {"taints": list(taints) or None}})


async def is_leaving(live):
    """Return whether the pod is being deleted, or is gone."""
    found = {pod.metadata.name: pod for pod in await live.pods_now()}
    return "p" not in found or found["p"].metadata.deletion_timestamp is not None


async def leaves_after(live, limit):
    """Return the seconds after which the pod leaves, None if it does not."""
    for second in range(limit):
        await live.sleep(0.5)
        if await is_leaving(live):
            return second
        await live.sleep(0.5)
    return None


@pytest.mark.parametrize(
    ("tolerations", "taints", "after"),
    [
        ([], [OUT], 0),
        ([toleration()], [OUT], None),
        ([toleration(seconds=7)], [OUT], 7),
        ([toleration(seconds=-5)], [OUT], 0),
        # The first toleration that matches a taint counts, and the shortest of those.
        ([toleration(seconds=9), toleration(seconds=3)], [OUT], 9),
        ([toleration(seconds=9), toleration("else", 3)], [OUT, {**OUT, "key": "else"}], 3),
        ([toleration(seconds=9)], [OUT, {**OUT, "key": "else"}], 0),
        # As the admission plugin DefaultTolerationSeconds gives it.
        ([], [UNREACHABLE], 300),
        ([toleration(UNREACHABLE["key"])], [UNREACHABLE], None),
        ([], [{**OUT, "effect": "NoSchedule"}], None),
    ],
)
def test_when_a_pod_leaves(tolerations, taints, after):
    """At once where a taint is not tolerated; else when its toleration has run out, if it ever does."""

    async def body(live):
        await begin(live, tolerating(*tolerations))
        await taint(live, *taints)
        return await leaves_after(live, 320)

    assert play(body, *PARTS) == after


def test_a_pod_stays_if_the_taint_goes_in_time():
    """And the time counts anew when the taint comes again."""

    async def body(live):
        await begin(live, tolerating(toleration(seconds=10)))
        await taint(live, OUT)
        await live.sleep(6)
        await taint(live)
        await live.sleep(20)
        assert not await is_leaving(live)
        await taint(live, OUT)
        return await leaves_after(live, 30)

    assert play(body, *PARTS) == 10


def test_a_plan_stands_while_other_taints_come_that_are_tolerated():
    """A further taint puts nothing off; one that is not tolerated ends the wait."""

    async def body(live):
        await begin(live, tolerating(toleration(seconds=10), toleration("else", 30)))
        await taint(live, OUT)
        await live.sleep(6)
        await taint(live, OUT, {**OUT, "key": "else"})
        first = await leaves_after(live, 30)
        await live.sleep(20)
        await taint(live)
        await live.add(PODS, tolerating(toleration(seconds=10)))
        await live.sleep(10)
        await taint(live, OUT)
        await live.sleep(2)
        await taint(live, OUT, {**OUT, "key": "third"})
        return first, await leaves_after(live, 30)

    assert play(body, *PARTS) == (4, 0)


def test_a_pod_that_comes_to_a_tainted_node_leaves_as_well():
    """Its time counts from its binding; it says why it goes, and its grace period is its own."""

    async def body(live):
        await live.add_nodes("n1")
        await taint(live, OUT)
        await live.sleep(50)
        pod = tolerating(toleration(seconds=5))
        pod["spec"]["terminationGracePeriodSeconds"] = 40
        await live.add(PODS, pod)
        after = await leaves_after(live, 30)
        leaving = await live.get(PODS, "p")
        why = pod_condition(leaving, "DisruptionTarget")
        return after, why.status, why.reason, leaving.metadata.deletion_grace_period_seconds

    assert play(body, *PARTS) == (5, "True", "DeletionByTaintManager", 40)


def test_a_deletion_that_fails_is_tried_again():
    """The API server is away for a while: the pod goes when it is back."""

    async def body(live):
        await begin(live, tolerating())
        failing.hit = lambda request: request.verb == "delete"
        await taint(live, OUT)
        await live.sleep(1)
        assert not await is_leaving(live)
        assert failing.hits > 1
        failing.hit = lambda _: False
        await live.sleep(5)
        return await is_leaving(live)

    failing = Failing(lambda _: False)
    assert play(body, *PARTS, faults=failing)
