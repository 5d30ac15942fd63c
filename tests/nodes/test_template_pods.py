"""The pods of a template: those that every node of the group has."""

from __future__ import annotations

from msgspec.structs import replace
from tests.nodes.frozen import LONG_AGO, World, group, pod, template

from kubetide.nodes.templates.build import all_templates

MIRROR = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}
LEAVING = {"metadata": {"deletionTimestamp": LONG_AGO, **MIRROR["metadata"]}}


def test_of_a_clouds_pods_only_those_of_the_kubelet_and_of_daemon_sets_count():
    """As upstream: whatever else a cloud names is not on a new node, nor is what is about to go."""
    named = (
        pod("proxy", kind="", **MIRROR),
        pod("agent", kind="DaemonSet", of="agent"),
        pod("stray", kind=""),
        pod("web", of="web"),
        pod("leaving", kind="", **LEAVING),
    )
    world = World(groups=[group("g", made=replace(template(), pods=named))])
    world.tick()
    assert [one.metadata.name for one in all_templates(world.state)["g"].pods] == ["proxy", "agent"]
