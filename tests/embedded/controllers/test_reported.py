"""What the cluster reports of pods where people look."""

from __future__ import annotations

from tests.embedded.controllers.live import play

from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, EVENTS, REPLICA_SETS
from kubetide.testing import builders

PARTS = ("kubelets", "scheduler", "replica_sets", "deployments", "daemon_sets")
OF_PODS = {"Scheduled", "SuccessfulCreate", "SuccessfulDelete"}


async def lived(live):
    """A Deployment that shrinks and a DaemonSet whose node is taken from it; gives the events of their pods."""
    await live.add_nodes("n1")
    await live.add(DEPLOYMENTS, builders.deployment("web", replicas=2))
    agent = builders.deployment("agent")
    await live.add(DAEMON_SETS, {**agent, "apiVersion": "apps/v1", "kind": "DaemonSet"})
    await live.sleep(20)
    await live.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
    await live.patch(
        DAEMON_SETS, "agent", {"spec": {"template": {"spec": {"nodeSelector": {"pool": "none"}}}}}
    )
    await live.sleep(20)
    events = [event for event in await live.list(EVENTS) if event.reason in OF_PODS]
    (replica_set,) = await live.list(REPLICA_SETS)
    return events, replica_set.metadata.name


def test_every_pod_is_reported_of():
    """Whoever makes, places or removes a pod says so in upstream's words."""
    events, replica_set = play(lived, *PARTS, writes_events=True)
    reported = sorted((event.reason, event.involved_object.kind, event.source.component) for event in events)
    assert reported == [
        ("Scheduled", "Pod", "default-scheduler"),
        ("Scheduled", "Pod", "default-scheduler"),
        ("Scheduled", "Pod", "default-scheduler"),
        ("SuccessfulCreate", "DaemonSet", "daemonset-controller"),
        ("SuccessfulCreate", "ReplicaSet", "replicaset-controller"),
        ("SuccessfulCreate", "ReplicaSet", "replicaset-controller"),
        ("SuccessfulDelete", "DaemonSet", "daemonset-controller"),
        ("SuccessfulDelete", "ReplicaSet", "replicaset-controller"),
    ]
    messages = " ".join(event.message for event in events)
    assert f"Created pod: {replica_set}-" in messages
    assert f"Deleted pod: {replica_set}-" in messages
    assert f"Successfully assigned shop/{replica_set}-" in messages


def test_nothing_is_reported_where_nobody_reads():
    """Without readers no event is written for a pod that fares well."""
    events, _ = play(lived, *PARTS)
    assert events == []
