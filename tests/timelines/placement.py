"""Timelines of the scheduler: who waits, who is tried again, and who gives way."""

from __future__ import annotations

from tests.timelines.bodies import node, waiting_pod
from tests.timelines.steps import Create, Delete, Patch, Ready
from tests.timelines.timeline import Timeline

from kubetide.objects.kinds import NODES, PODS, PRIORITY_CLASSES
from kubetide.testing import builders

_STARTING = {"key": "example.com/starting", "effect": "NoSchedule"}


def _pods(at: float, count: int) -> list[Create]:
    return [Create(at + 0.1 * number, PODS, waiting_pod(f"p{number}")) for number in range(1, count + 1)]


PLACEMENT = (
    Timeline(
        name="late-node",
        about="A pod that fits nowhere is bound when a node has joined and is ready, and not before.",
        lasts=7,
        before=[node("n1", "1")],
        steps=[
            Create(0, PODS, waiting_pod("p1")),
            Create(2, *node("n2", ready=False)),
            Ready(4, "n2"),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="startup-taint",
        about="A node has a taint of its own until its agent runs: pods are bound when that takes it off.",
        lasts=7,
        before=[node("n1", "1")],
        steps=[
            Create(0, PODS, waiting_pod("p1")),
            Create(2, *node("n2", ready=False, taints=[_STARTING])),
            Ready(3, "n2"),
            Patch(4.5, NODES, "n2", {"spec": {"taints": None}}),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="one-node-at-a-time",
        about="Four refused pods, and nodes for one of them each: a pod in back-off is tried at once when no other is active.",
        lasts=9,
        before=[node("n0", "1")],
        steps=[
            *_pods(0, 4),
            Create(2, *node("n1", "2")),
            Create(2.6, *node("n2", "2")),
            Create(3.2, *node("n3", "2")),
            Create(3.8, *node("n4", "2")),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="closed-nodes",
        about="Nodes come that would hold a pod and are closed to it: it is tried again each time, and is on the open one at once.",
        lasts=9,
        before=[node("n0", "1")],
        steps=[
            Create(0, PODS, waiting_pod("p1")),
            *(
                Create(number, *node(f"n{number}", taints=[{"key": "closed", "effect": "NoSchedule"}]))
                for number in range(1, 5)
            ),
            Create(6, *node("n9")),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="freed-capacity",
        about="Five refused pods, and a pod goes whose place holds two: they are bound when it is gone, those that have waited longest.",
        lasts=10,
        before=[node("n1"), (PODS, waiting_pod("big", "4", grace=10))],
        steps=[*_pods(0, 5), Delete(3, PODS, "big")],
        tells_apart=True,
    ),
    Timeline(
        name="uncordoned",
        about="A pod waits while the only node is cordoned, and is bound when it no longer is.",
        lasts=7,
        before=[node("n1")],
        steps=[
            Patch(0, NODES, "n1", {"spec": {"unschedulable": True}}),
            Create(1, PODS, waiting_pod("p1")),
            Patch(3, NODES, "n1", {"spec": {"unschedulable": None}}),
        ],
        tells_apart=True,
    ),
    Timeline(
        name="preemption",
        about="A pod of a high priority: its victims get their grace period, and it is bound when they are gone.",
        lasts=9,
        before=[
            (PRIORITY_CLASSES, builders.priority_class("low", 1)),
            (PRIORITY_CLASSES, builders.priority_class("high", 1000)),
            node("n1"),
            (PODS, waiting_pod("low", "3", priorityClassName="low")),
        ],
        steps=[
            Create(3, PODS, waiting_pod("urgent", priorityClassName="high")),
            Create(3.3, PODS, waiting_pod("other", priorityClassName="low")),
        ],
        tells_apart=True,
    ),
)
