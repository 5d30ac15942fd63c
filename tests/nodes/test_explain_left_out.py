"""Pods that no node is sought for say why, and who has to act."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, node, pod

from kubetide.nodes.explain.answers import explain_pod

UNSEEN = {"status": {"conditions": None}}


@pytest.mark.parametrize(
    ("asked", "settings", "words"),
    [
        (
            pod("a", spec={"schedulingGates": [{"name": "kueue"}, {"name": "quota"}]}),
            {},
            "scheduling gates kueue, quota hold it back",
        ),
        (
            pod("a", spec={"schedulingGates": [{"name": "kueue"}]}),
            {},
            "gate kueue holds it back from the scheduler, so no node is sought for it.",
        ),
        (pod("a", spec={"schedulerName": "volcano"}, **UNSEEN), {}, "scheduler of that name runs"),
        (
            pod("a", spec={"schedulerName": "volcano"}),
            {"allowed_scheduler_names": ("default-scheduler",)},
            "volcano is not in --allowed-scheduler-names",
        ),
        (
            pod("a", spec={"priority": -20}),
            {},
            "priority -20 is below -10, --expendable-pods-priority-cutoff",
        ),
        (pod("a", kind="DaemonSet"), {}, "belongs to a DaemonSet, so no node is bought for it"),
        (pod("a", metadata={"deletionTimestamp": "2026-03-02T07:00:00Z"}), {}, "It is being deleted"),
        (pod("a", **UNSEEN), {}, "The scheduler has not said"),
    ],
    ids=["gates", "gate", "unknown scheduler", "scheduler", "priority", "DaemonSet", "deleted", "not yet"],
)
def test_a_pod_that_no_node_is_sought_for_says_why(asked, settings, words):
    """The rule that leaves the pod out is named, and nothing is bought for it."""
    world = World(
        pods=[asked], nodes=[node("n1", cpu="50m")], groups=[group("g", nodes=["n1"])], settings=settings
    )
    assert world.increases() == {}
    found = explain_pod(world.state, ("default", "a"), world.now)
    assert words in found.sentence
    assert (found.status, found.groups) == ("ignored", ())


def test_a_priority_at_the_cutoff_gets_a_node():
    """What the explanation asks of an expendable pod is enough."""
    world = World(pods=[pod("a", spec={"priority": -10})], groups=[group("g")])
    assert world.increases() == {"g": 1}
