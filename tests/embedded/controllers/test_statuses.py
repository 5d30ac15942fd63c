from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins
from tests.embedded.controllers.live import Failing, play

from kubetide.embedded.controllers.workloads.templates import status_patch
from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, PDBS
from kubetide.objects.meta import Condition
from kubetide.objects.policy import PodDisruptionBudgetStatus
from kubetide.testing import builders
from kubetide.units.patch import merge_patch

STATUSES = st.builds(
    PodDisruptionBudgetStatus,
    observed_generation=st.integers(0, 2),
    disruptions_allowed=st.integers(0, 2),
    conditions=st.none()
    | st.lists(
        st.builds(Condition, type=st.sampled_from("AB"), status=st.sampled_from("xy")), min_size=1
    ).map(tuple),
    disrupted_pods=st.none()
    | st.dictionaries(st.sampled_from("pqr"), st.sampled_from(["1", "2"]), min_size=1),
)


@settings(max_examples=100, deadline=None)
@given(old=STATUSES, new=STATUSES)
def test_a_patch_makes_the_new_status_of_the_old(old, new):
    """Applied to what the server has, the patch gives just the new status; there is none between equals."""
    patch = status_patch(old, new)
    assert (patch is None) == (old == new)
    after = merge_patch(to_builtins(old), {} if patch is None else patch["status"])
    assert convert(after, PodDisruptionBudgetStatus) == new


def test_counts_that_the_api_requires_are_written_at_zero():
    """Budgets and DaemonSets without pods say 0 where the API omits nothing."""

    async def body(live):
        await live.add(PDBS, builders.pdb("web", {"app": "web"}, min_available=1))
        template = {"metadata": {"labels": {"app": "log"}}, "spec": builders.pod_spec()}
        await live.add(
            DAEMON_SETS,
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "log"},
                "spec": {"selector": {"matchLabels": {"app": "log"}}, "template": template},
            },
        )
        await live.sleep(1)
        budget = (await live.get(PDBS.untyped, "web"))["status"]
        assert [budget[k] for k in ("disruptionsAllowed", "currentHealthy", "expectedPods")] == [0, 0, 0]
        daemons = (await live.get(DAEMON_SETS.untyped, "log"))["status"]
        assert daemons["desiredNumberScheduled"] == daemons["numberReady"] == 0

    play(body, "pdbs", "daemon_sets")


def test_one_pod_more_costs_few_status_writes():
    """Scaling up by one writes each status when the pod is made and when it is ready, and not in between."""
    writes = []

    def count(request):
        if request.subresource == "status" and request.kind.kind in {"Deployment", "ReplicaSet"}:
            writes.append(request.kind.kind)
        return False

    async def body(live):
        await live.add_nodes("n1")
        await live.add(DEPLOYMENTS, builders.deployment("web", replicas=2))
        await live.sleep(60)
        writes.clear()
        await live.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
        await live.sleep(60)
        assert (await live.get(DEPLOYMENTS, "web")).status.available_replicas == 3

    play(body, "kubelets", "scheduler", "replica_sets", "deployments", faults=Failing(count))
    assert writes.count("ReplicaSet") == 2
    assert writes.count("Deployment") == 3  # one more says that the new size was seen


def test_a_status_that_someone_else_wrote_is_put_right():
    """A status that no sync computed is no echo: it leads to a sync, and the true status comes back."""

    async def body(live):
        await live.add_nodes("n1")
        await live.add(DEPLOYMENTS, builders.deployment("web", replicas=2))
        await live.sleep(60)
        await live.patch(DEPLOYMENTS, "web", {"status": {"readyReplicas": 7}}, subresource="status")
        await live.sleep(1)
        assert (await live.get(DEPLOYMENTS, "web")).status.ready_replicas == 2

    play(body, "kubelets", "scheduler", "replica_sets", "deployments")
