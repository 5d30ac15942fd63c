"""Timelines of workloads: what Deployments, StatefulSets, DaemonSets and Jobs do, and when."""

from __future__ import annotations

from tests.timelines.bodies import daemon_set, job, node, stateful_set
from tests.timelines.steps import Create, Delete, Patch, Ready, Scale
from tests.timelines.timeline import Timeline

from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, JOBS, STATEFUL_SETS
from kubetide.testing import builders

_NEW_IMAGE = {"spec": {"template": {"metadata": {"annotations": {"release": "2"}}}}}
_ROLLING = {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}}

WORKLOADS = (
    Timeline(
        name="deployment",
        about="A Deployment of three on a ready node: pods are made, bound, ready; then its status says so.",
        lasts=5,
        before=[node("n1")],
        steps=[Create(0, DEPLOYMENTS, builders.deployment("web", replicas=3))],
    ),
    Timeline(
        name="scaling",
        about="Three more pods, and then those go that have been ready for the shortest time.",
        lasts=14,
        before=[node("n1")],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=2)),
            Patch(4, DEPLOYMENTS, "web", {"spec": {"replicas": 5}}),
            Scale(9, DEPLOYMENTS, "web", 2),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="rolling-update",
        about="A new template with maxSurge 1 and maxUnavailable 1: how the two ReplicaSets pass pods on.",
        lasts=16,
        before=[node("n1")],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=4, extra=_ROLLING)),
            Patch(4, DEPLOYMENTS, "web", _NEW_IMAGE),
        ],
    ),
    Timeline(
        name="deployment-deleted",
        about="A Deployment is deleted in the background: it goes at once, its ReplicaSet and pods after it.",
        lasts=8,
        before=[node("n1")],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=3)),
            Delete(4, DEPLOYMENTS, "web"),
        ],
    ),
    Timeline(
        name="stateful-set",
        about="Three pods in order, each after the one before is ready; scaled to one they go in reverse.",
        lasts=16,
        before=[node("n1")],
        steps=[
            Create(0, STATEFUL_SETS, stateful_set("db", 3)),
            Patch(9, STATEFUL_SETS, "db", {"spec": {"replicas": 1}}),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="daemon-set",
        about="A node joins that is not ready yet: its DaemonSet pod comes when it is.",
        lasts=11,
        before=[node("n1")],
        steps=[
            Create(0, DAEMON_SETS, daemon_set("agent")),
            Create(4, *node("n2", ready=False)),
            Ready(6, "n2"),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="job",
        about="Three completions, two at a time.",
        lasts=16,
        before=[node("n1")],
        steps=[Create(0, JOBS, job("sum", completions=3, parallelism=2))],
    ),
    Timeline(
        name="job-failing",
        about="Pods of a Job fail: the next one comes after 10 s, then after 20 s, and after two more the Job has failed.",
        lasts=45,
        before=[node("n1")],
        steps=[Create(0, JOBS, job("sum", exit_code=1, backoffLimit=2))],
        tells_apart=True,
    ),
)
