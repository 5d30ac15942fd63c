"""Timelines of disruptions: budgets, drains, taints that evict, and nodes that fall silent."""

from __future__ import annotations

from tests.timelines.bodies import node, waiting_pod
from tests.timelines.steps import Create, Drain, Evict, Patch, Resume, Silence
from tests.timelines.timeline import Timeline

from kubetide.objects.kinds import DEPLOYMENTS, NODES, PDBS, PODS
from kubetide.testing import builders

_OUT = {"key": "example.com/out", "effect": "NoExecute"}
_SOON = {
    "spec": {
        "template": {
            "spec": {
                "tolerations": [
                    {
                        "key": f"node.kubernetes.io/{name}",
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 4,
                    }
                    for name in ("not-ready", "unreachable")
                ]
            }
        }
    }
}

DISRUPTIONS = (
    Timeline(
        name="eviction",
        about="A budget lets one pod go, then none, and again one when the replacement is ready.",
        lasts=14,
        before=[node("n1"), (PDBS, builders.pdb("web", {"app": "web"}, min_available=2))],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=3)),
            Evict(4, "web#1-1"),
            Evict(4.6, "web#1-2"),
            Evict(8, "web#1-2"),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="drain",
        about="A node with three pods is drained under a budget that lets one go at a time.",
        lasts=22,
        before=[node("n1"), (PDBS, builders.pdb("web", {"app": "web"}, max_unavailable=1))],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=3)),
            Create(3.5, *node("n2")),
            Drain(4.5, "n1"),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="evicting-taint",
        about="A NoExecute taint: a pod without a toleration goes at once, one that tolerates it for 3 s goes then, and one stays.",
        lasts=10,
        before=[node("n1")],
        steps=[
            Create(0, PODS, waiting_pod("plain", "100m")),
            Create(
                0.1,
                PODS,
                waiting_pod(
                    "brief", "100m", tolerations=[{**_OUT, "operator": "Exists", "tolerationSeconds": 3}]
                ),
            ),
            Create(0.2, PODS, waiting_pod("patient", "100m", tolerations=[{**_OUT, "operator": "Exists"}])),
            Patch(4, NODES, "n1", {"spec": {"taints": [_OUT]}}),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="silent-node",
        about="A kubelet falls silent: the node is lost after the grace period, its pods are not ready, and evicted after their toleration.",
        lasts=30,
        grace=8,
        before=[node("n1"), node("n2", cordoned=True)],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=1, extra=_SOON)),
            Patch(3, NODES, "n2", {"spec": {"unschedulable": None}}),
            Silence(4, "n1"),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="silence-ended",
        about="A silent kubelet speaks again before its pods are evicted: they stay.",
        lasts=26,
        grace=8,
        before=[node("n1"), node("n2", cordoned=True)],
        steps=[
            Create(0, DEPLOYMENTS, builders.deployment("web", replicas=1)),
            Silence(4, "n1"),
            Resume(20, "n1"),
        ],
        tells_apart=True,
    ),
)
