from __future__ import annotations

from itertools import pairwise

import pytest
from tests.embedded.controllers.live import Failing, names, play

from kubetide.embedded.controllers.workloads.owned_pods import is_ready
from kubetide.objects.kinds import DAEMON_SETS, NODES, PODS
from kubetide.testing import builders

TOO_LARGE = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "1000"}}}
PARTS = ("daemon_sets", "scheduler", "kubelets")


def daemon_set(**pod_spec):
    spec = {**builders.pod_spec(), **pod_spec}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }


def taint(key, effect):
    return {"spec": {"taints": [{"key": key, "effect": effect}]}}


async def begin(live, *nodes, **pod_spec):
    await live.add_nodes(*nodes)
    await live.add(DAEMON_SETS, daemon_set(**pod_spec))
    await live.sleep(20)


async def nodes_with_pods(live):
    return sorted(pod.spec.node_name for pod in await live.pods_now())


def test_one_pod_on_every_node_also_on_later_ones():
    """Each node has one running pod, a node that joins gets one, and the status counts them."""

    async def body(live):
        await begin(live, "n1", "n2")
        await live.add_nodes("n3")
        await live.sleep(20)
        assert await nodes_with_pods(live) == ["n1", "n2", "n3"]
        status = (await live.get(DAEMON_SETS, "agent")).status
        assert (status.desired_number_scheduled, status.number_ready) == (3, 3)

    play(body, *PARTS)


def test_a_node_selector_chooses_the_nodes():
    """Only nodes with the label have a pod; a node that loses it loses its pod."""

    async def body(live):
        await live.add_nodes("n1", "n2", labels={"disk": "ssd"})
        await begin(live, "n3", nodeSelector={"disk": "ssd"})
        assert await nodes_with_pods(live) == ["n1", "n2"]
        await live.cluster.patch(NODES, "n2", {"metadata": {"labels": {"disk": None}}})
        await live.sleep(20)
        assert await nodes_with_pods(live) == ["n1"]

    play(body, *PARTS)


@pytest.mark.parametrize(
    ("key", "effect", "stays"),
    [
        ("ToBeDeletedByClusterAutoscaler", "NoSchedule", True),
        ("dedicated", "NoSchedule", True),
        ("dedicated", "PreferNoSchedule", True),
        ("dedicated", "NoExecute", False),
        ("node.kubernetes.io/unreachable", "NoExecute", True),
    ],
)
def test_which_taints_remove_a_running_pod(key, effect, stays):
    """Only a NoExecute taint that the pod does not tolerate removes a pod that is on the node."""

    async def body(live):
        await begin(live, "n1")
        first = names(await live.pods_now())
        await live.cluster.patch(NODES, "n1", taint(key, effect))
        await live.sleep(20)
        assert names(await live.pods_now()) == (first if stays else [])

    play(body, *PARTS)


@pytest.mark.parametrize(
    ("key", "host_network", "runs"),
    [
        ("dedicated", False, False),
        ("node.kubernetes.io/unschedulable", False, True),
        ("node.kubernetes.io/network-unavailable", False, False),
        ("node.kubernetes.io/network-unavailable", True, True),
    ],
)
def test_which_taints_repel_a_new_pod(key, host_network, runs):
    """Daemon pods tolerate some taints of themselves; a network that is not there only with the host's."""

    async def body(live):
        await live.add_nodes("n1", extra=taint(key, "NoSchedule"))
        await begin(live, hostNetwork=host_network)
        assert await nodes_with_pods(live) == (["n1"] if runs else [])

    play(body, *PARTS)


def test_a_pod_on_its_way_out_holds_its_node():
    """A new pod is made only when the old one is deleted: there are never two on a node."""

    async def body(live):
        most = []
        live.pods.on_change(lambda *_: most.append(len(live.pods.objects)))
        await begin(live, "n1")
        (first,) = names(await live.pods_now())
        await live.cluster.delete(PODS, first, namespace="shop")
        await live.sleep(20)
        (second,) = await live.pods_now()
        assert second.metadata.name != first
        assert second.status.phase == "Running"
        assert max(most) == 1

    play(body, *PARTS)


def test_a_failed_pod_is_made_anew_later_each_time():
    """A pod that fails is removed before a new one is made, at once and then 1, 2, 4 s later and so on."""

    async def body(live):
        made = []
        live.pods.on_change(lambda _key, old, _new: made.append(live.clock.now()) if old is None else None)
        await begin(live, "n1")
        for count in range(2, 8):
            (pod,) = await live.pods_now()
            failed = {"status": {"phase": "Failed"}}
            await live.patch(PODS, pod.metadata.name, failed, subresource="status")
            while len(made) < count:
                await live.sleep(0.25)
            assert len(await live.pods_now()) == 1
        return [(after - before) / 1e9 for before, after in pairwise(made)]

    assert play(body, "daemon_sets") == [20, 1, 2, 4, 8, 16]


def test_a_failing_api_server_delays_a_pod_only_while_it_fails():
    """After a creation that failed the node is tried again within seconds."""
    failing = Failing(lambda request: request.kind is PODS and failing.hits < 3 and request.verb == "create")

    async def body(live):
        await begin(live, "n1", "n2")
        assert await nodes_with_pods(live) == ["n1", "n2"]
        assert failing.hits == 3

    play(body, *PARTS, faults=failing)


@pytest.mark.parametrize("lag", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("expires", [False, True])
def test_nothing_is_made_twice_when_caches_are_behind(lag, expires):
    """While pods are seen late, and caches list anew all along, each node gets one pod."""

    async def body(live):
        made = []
        live.pods.on_change(lambda key, old, _new: made.append(key) if old is None else None)
        await live.add(DAEMON_SETS, daemon_set())
        for number in range(8):
            await live.add_nodes(f"n{number}")
            if expires:
                live.cluster.expire_watches()
            await live.sleep(0.7)
        await live.sleep(60)
        assert await nodes_with_pods(live) == [f"n{number}" for number in range(8)]
        assert len(made) == 8

    play(body, *PARTS, lag=lag)


def test_a_node_that_goes_takes_its_pod_with_it():
    """The pod of a deleted node is collected, not made anew, and the status forgets the node."""

    async def body(live):
        await begin(live, "n1", "n2")
        await live.cluster.delete(NODES, "n2")
        await live.sleep(90)
        assert await nodes_with_pods(live) == ["n1"]
        status = (await live.get(DAEMON_SETS, "agent")).status
        assert (status.desired_number_scheduled, status.number_misscheduled) == (1, 0)

    play(body, *PARTS)


def updated_by(**strategy):
    """Return a DaemonSet whose pods are updated in that way."""
    body = daemon_set()
    body["spec"]["updateStrategy"] = strategy
    return body


async def change_template(live, value="new"):
    """Change a field that no cache holds."""
    containers = [{"name": "app", "image": "app", "env": [{"name": "A", "value": value}]}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await live.cluster.patch(DAEMON_SETS, "agent", patch, namespace="shop")


@pytest.mark.parametrize(
    ("rolling", "at_once"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "50%"}, 2),
        ({"maxUnavailable": 0, "maxSurge": 1}, 1),
    ],
)
@pytest.mark.parametrize("lag", [0.0, 1.0])
def test_a_changed_template_replaces_the_pods(rolling, at_once, lag):
    """No more of them are missing or not ready at once than the strategy allows; the status counts the new ones."""

    async def body(live):
        most = [0]

        def look(*_):
            ready = sum(
                is_ready(pod) and not pod.metadata.deletion_timestamp for pod in live.pods.objects.values()
            )
            most.append(4 - ready)

        await live.add_nodes("n1", "n2", "n3", "n4")
        await live.add(DAEMON_SETS, updated_by(type="RollingUpdate", rollingUpdate=rolling))
        await live.sleep(30)
        first = names(await live.pods_now())
        live.pods.on_change(look)
        await change_template(live)
        await live.sleep(1 + 2 * lag)
        status = (await live.get(DAEMON_SETS, "agent")).status
        assert status.updated_number_scheduled < 4
        await live.sleep(120)
        pods = await live.pods_now()
        assert not set(first) & set(names(pods))
        status = (await live.get(DAEMON_SETS, "agent")).status
        assert (status.updated_number_scheduled, status.number_available) == (4, 4)
        return max(most)

    assert play(body, *PARTS, lag=lag) == at_once


def test_on_delete_leaves_the_pods():
    """The status says that none is updated; who deletes a pod gets a new one."""

    async def body(live):
        await live.add_nodes("n1", "n2")
        await live.add(DAEMON_SETS, updated_by(type="OnDelete"))
        await live.sleep(20)
        first = names(await live.pods_now())
        await change_template(live)
        await live.sleep(60)
        assert names(await live.pods_now()) == first
        assert (await live.get(DAEMON_SETS, "agent")).status.updated_number_scheduled == 0
        await live.cluster.delete(PODS, first[0], namespace="shop")
        await live.sleep(20)
        assert (await live.get(DAEMON_SETS, "agent")).status.updated_number_scheduled == 1

    play(body, *PARTS)


def test_pods_that_do_not_run_are_replaced_at_once():
    """A template that was wrong is put right without waiting for its pods."""

    async def body(live):
        await begin(live, "n1", "n2", "n3", nodeSelector=None, containers=[TOO_LARGE])
        assert [pod.status.phase for pod in await live.pods_now()] == ["Pending"] * 3
        await change_template(live)
        await live.sleep(20)
        status = (await live.get(DAEMON_SETS, "agent")).status
        assert (status.updated_number_scheduled, status.number_ready) == (3, 3)

    play(body, *PARTS)
