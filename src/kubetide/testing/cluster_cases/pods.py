"""Binding, resizing, eviction and priority."""

from __future__ import annotations

from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.kinds import PDBS, PODS, PRIORITY_CLASSES
from kubetide.objects.pod import pod_condition
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, TooManyRequests
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import NO_NODE, Case, eventually, exists, own_pod, refused, scratch

_OTHER_UID = "00000000-0000-4000-8000-000000000000"


async def bind_sets_the_node(cluster: Cluster, _clock: Clock) -> None:
    """A binding sets the pod's node and the condition PodScheduled."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(PODS, own_pod("a"), namespace=namespace)
        await cluster.bind(namespace=namespace, pod="a", node=NO_NODE, uid=made.metadata.uid)
        pod = await cluster.get(PODS, "a", namespace=namespace)
        scheduled = pod_condition(pod, "PodScheduled")
        assert pod.spec.node_name == NO_NODE
        assert scheduled is not None
        assert scheduled.status == "True"


async def bind_once(cluster: Cluster, _clock: Clock) -> None:
    """A pod that is bound cannot be bound again."""
    async with scratch(cluster) as namespace:
        await cluster.create(PODS, own_pod("a"), namespace=namespace)
        await cluster.bind(namespace=namespace, pod="a", node=NO_NODE)
        with refused(Conflict) as refusal:
            await cluster.bind(namespace=namespace, pod="a", node="other")
        assert str(refusal.error) == (
            'Operation cannot be fulfilled on pods/binding "a": '
            f'pod a is already assigned to node "{NO_NODE}"'
        )


async def bind_only_what_is_there(cluster: Cluster, _clock: Clock) -> None:
    """Binding a pod that is not there is NotFound, one of another uid a Conflict."""
    async with scratch(cluster) as namespace:
        with refused(NotFound):
            await cluster.bind(namespace=namespace, pod="none", node=NO_NODE)
        await cluster.create(PODS, own_pod("a"), namespace=namespace)
        with refused(Conflict):
            await cluster.bind(namespace=namespace, pod="a", node=NO_NODE, uid=_OTHER_UID)
        assert (await cluster.get(PODS, "a", namespace=namespace)).spec.node_name == ""


async def bind_nothing_that_ends(cluster: Cluster, _clock: Clock) -> None:
    """A pod that is being deleted cannot be bound."""
    async with scratch(cluster) as namespace:
        body = own_pod("a", extra={"metadata": {"finalizers": ["test/hold"]}})
        await cluster.create(PODS, body, namespace=namespace)
        await cluster.delete(PODS, "a", namespace=namespace)
        with refused(Conflict):
            await cluster.bind(namespace=namespace, pod="a", node=NO_NODE)
        await cluster.patch(PODS, "a", {"metadata": {"finalizers": None}}, namespace=namespace)


async def evict_without_budget(cluster: Cluster, _clock: Clock) -> None:
    """An eviction that no budget forbids deletes gracefully and says so in a condition."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "a")
        await cluster.evict(namespace=namespace, pod="a", grace_period_s=12)
        pod = await cluster.get(PODS, "a", namespace=namespace)
        assert pod.metadata.deletion_grace_period_seconds == 12
        target = pod_condition(pod, "DisruptionTarget")
        assert target is not None
        assert (target.status, target.reason) == ("True", "EvictionByEvictionAPI")


async def evict_only_what_is_there(cluster: Cluster, _clock: Clock) -> None:
    """Evicting a pod that is not there is NotFound, one of another uid a Conflict."""
    async with scratch(cluster) as namespace:
        with refused(NotFound) as refusal:
            await cluster.evict(namespace=namespace, pod="none")
        assert str(refusal.error) == 'pods "none" not found'
        await _running(cluster, namespace, "a")
        with refused(Conflict):
            await cluster.evict(namespace=namespace, pod="a", uid=_OTHER_UID)
        assert (await cluster.get(PODS, "a", namespace=namespace)).metadata.deletion_timestamp is None


async def a_budget_is_used_up(cluster: Cluster, clock: Clock) -> None:
    """A budget of one disruption lets one pod go and notes it; the second is TooManyRequests."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "a")
        await _running(cluster, namespace, "b")
        await _budget(cluster, clock, namespace, allowed=1, healthy=2, desired=1)

        async def let_go() -> bool:
            # A disruption controller that has not seen both pods ready yet says in its turn that none may go.
            try:
                await cluster.evict(namespace=namespace, pod="a")
            except TooManyRequests:
                return False
            return True

        await eventually(clock, "the budget lets one pod go", let_go)
        budget = await cluster.get(PDBS, "budget", namespace=namespace)
        assert budget.status.disruptions_allowed == 0
        with refused(TooManyRequests) as refusal:
            await cluster.evict(namespace=namespace, pod="b")
        assert str(refusal.error) == "Cannot evict pod as it would violate the pod's disruption budget."
        assert refusal.error.causes[0]["reason"] == "DisruptionBudget"
        assert (await cluster.get(PODS, "b", namespace=namespace)).metadata.deletion_timestamp is None


async def a_budget_says_what_it_needs(cluster: Cluster, clock: Clock) -> None:
    """The cause of a refused eviction names the budget, what it needs and what there is."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "a")
        await _budget(cluster, clock, namespace, allowed=0, healthy=1, desired=1)
        with refused(TooManyRequests) as refusal:
            await cluster.evict(namespace=namespace, pod="a")
        assert (
            refusal.error.causes[0]["message"]
            == "The disruption budget budget needs 1 healthy pods and has 1 currently"
        )


async def pending_and_ended_pods_need_no_budget(cluster: Cluster, clock: Clock) -> None:
    """Pods that do not run yet or have ended can be evicted whatever the budget says."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "keep")
        await _running(cluster, namespace, "ended")
        await cluster.create(PODS, own_pod("pending", labels={"app": "web"}), namespace=namespace)
        await _status(cluster, namespace, "ended", {"phase": "Succeeded"})
        await _budget(cluster, clock, namespace, allowed=0, healthy=1, desired=1)
        for name in ("pending", "ended"):
            await cluster.evict(namespace=namespace, pod=name)
            assert not await exists(cluster, PODS, name, namespace)


async def two_budgets_are_too_many(cluster: Cluster, clock: Clock) -> None:
    """A pod under two budgets cannot be evicted: a server error, not a refusal to wait for."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "a")
        await _running(cluster, namespace, "b")
        for name in ("one", "two"):
            await _budget(cluster, clock, namespace, name=name, allowed=1, healthy=2, desired=1)
        with refused(ApiError) as refusal:
            await cluster.evict(namespace=namespace, pod="a")
        assert refusal.error.code == 500
        assert "more than one PodDisruptionBudget" in str(refusal.error)


async def an_unready_pod_goes_when_enough_are_healthy(cluster: Cluster, clock: Clock) -> None:
    """A running pod that is not ready can be evicted without being counted when the budget is met."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "a")
        await _running(cluster, namespace, "sick", ready=False)
        await _budget(cluster, clock, namespace, allowed=0, healthy=1, desired=1)
        await cluster.evict(namespace=namespace, pod="sick")
        assert (await cluster.get(PODS, "sick", namespace=namespace)).metadata.deletion_timestamp
        budget = await cluster.get(PDBS, "budget", namespace=namespace)
        assert not budget.status.disrupted_pods


async def an_unready_pod_stays_when_too_few_are_healthy(cluster: Cluster, clock: Clock) -> None:
    """A running pod that is not ready cannot be evicted by default when the budget is not met."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "sick", ready=False)
        await _budget(cluster, clock, namespace, allowed=0, healthy=0, desired=1)
        with refused(TooManyRequests):
            await cluster.evict(namespace=namespace, pod="sick")


async def always_allow_lets_unready_pods_go(cluster: Cluster, clock: Clock) -> None:
    """With AlwaysAllow a running pod that is not ready can always be evicted."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "sick", ready=False)
        extra = {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
        await _budget(cluster, clock, namespace, allowed=0, healthy=0, desired=1, extra=extra)
        await cluster.evict(namespace=namespace, pod="sick")
        assert (await cluster.get(PODS, "sick", namespace=namespace)).metadata.deletion_timestamp


async def a_budget_of_others_does_not_count(cluster: Cluster, clock: Clock) -> None:
    """A budget covers the pods that its selector selects, and no others."""
    async with scratch(cluster) as namespace:
        await _running(cluster, namespace, "a")
        await _running(cluster, namespace, "other", labels={"app": "other"})
        await _budget(cluster, clock, namespace, allowed=0, healthy=1, desired=1)
        await cluster.evict(namespace=namespace, pod="other")
        assert (await cluster.get(PODS, "other", namespace=namespace)).metadata.deletion_timestamp


async def a_class_gives_the_priority(cluster: Cluster, _clock: Clock) -> None:
    """A pod gets the value of the priority class that it names; 0 without one."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(PRIORITY_CLASSES, builders.priority_class("battery-", 1234))
        try:
            name = made.metadata.name
            body = own_pod("a", extra={"spec": {"priorityClassName": name}})
            pod = await cluster.create(PODS, body, namespace=namespace)
            assert (pod.spec.priority, pod.spec.priority_class_name) == (1234, name)
        finally:
            await cluster.delete(PRIORITY_CLASSES, made.metadata.name)
        assert (await cluster.create(PODS, own_pod("b"), namespace=namespace)).spec.priority is not None


async def the_system_classes_exist(cluster: Cluster, _clock: Clock) -> None:
    """The two system priority classes are there, with the highest values."""
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)):
        assert (await cluster.get(PRIORITY_CLASSES, name)).value == value


async def an_unknown_class_is_forbidden(cluster: Cluster, _clock: Clock) -> None:
    """A pod that names a class that is not there is refused."""
    async with scratch(cluster) as namespace:
        body = own_pod("a", extra={"spec": {"priorityClassName": "battery-none"}})
        with refused(Forbidden) as refusal:
            await cluster.create(PODS, body, namespace=namespace)
        assert "no PriorityClass with name battery-none was found" in str(refusal.error)


async def _running(
    cluster: Cluster, namespace: str, name: str, *, ready: bool = True, labels: dict[str, str] | None = None
) -> None:
    await cluster.create(PODS, own_pod(name, labels=labels or {"app": "web"}), namespace=namespace)
    await cluster.bind(namespace=namespace, pod=name, node=NO_NODE)
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    await _status(cluster, namespace, name, {"phase": "Running", "conditions": [condition]})


async def _status(cluster: Cluster, namespace: str, name: str, status: Json) -> None:
    await cluster.patch(PODS, name, {"status": status}, namespace=namespace, subresource="status")


async def _budget(
    cluster: Cluster,
    clock: Clock,
    namespace: str,
    *,
    allowed: int,
    healthy: int,
    desired: int,
    name: str = "budget",
    extra: Any = None,
) -> None:
    """Create a budget and its status: what a disruption controller, where there is one, would write too."""
    body = builders.pdb(name, {"app": "web"}, min_available=desired, extra=extra)
    made = await cluster.create(PDBS, body, namespace=namespace)
    status = {
        "observedGeneration": made.metadata.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": max(healthy, desired),
    }

    async def written() -> bool:
        try:
            await cluster.patch(PDBS, name, {"status": status}, namespace=namespace, subresource="status")
        except Conflict:
            return False
        return True

    await eventually(clock, "the budget has its status", written)


async def a_resize_changes_requests(cluster: Cluster, _clock: Clock) -> None:
    """Requests of a pod that is there change through ``resize`` only, and only of the pod of that UID."""
    async with scratch(cluster) as namespace:
        made = await cluster.create(PODS, own_pod("a", cpu="100m"), namespace=namespace)
        more: Json = {"op": "add", "path": "/spec/containers/0/resources/requests/cpu", "value": "200m"}
        where: dict[str, Any] = {"namespace": namespace, "patch_type": "json"}
        with refused(Invalid):
            await cluster.patch(PODS, "a", [more], **where)
        other: Json = {"op": "test", "path": "/metadata/uid", "value": _OTHER_UID}
        with refused(Invalid):
            await cluster.patch(PODS, "a", [other, more], subresource="resize", **where)
        same: Json = {**other, "value": made.metadata.uid}
        pod = await cluster.patch(PODS, "a", [same, more], subresource="resize", **where)
        [container] = pod.spec.containers or ()
        assert (container.resources.requests or {})["cpu"] == "200m"


CASES: list[Case] = [
    bind_sets_the_node,
    bind_once,
    bind_only_what_is_there,
    bind_nothing_that_ends,
    a_resize_changes_requests,
    evict_without_budget,
    evict_only_what_is_there,
    a_budget_is_used_up,
    a_budget_says_what_it_needs,
    pending_and_ended_pods_need_no_budget,
    two_budgets_are_too_many,
    an_unready_pod_goes_when_enough_are_healthy,
    an_unready_pod_stays_when_too_few_are_healthy,
    always_allow_lets_unready_pods_go,
    a_budget_of_others_does_not_count,
    a_class_gives_the_priority,
    the_system_classes_exist,
    an_unknown_class_is_forbidden,
]
