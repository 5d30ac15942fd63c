"""The content of /snapshotz: upstream's shape, with nodes on their way and pods that fit."""

from __future__ import annotations

import msgspec
from tests.nodes.frozen import START, World, group, node, pod, pods

from kubetide.nodes.explain.debugging_snapshot import debugging_snapshot, failed_snapshot


def test_the_shape_is_upstreams():
    """Nodes with their pods, the pending pods that fit, and the template of each group."""
    held = World(
        groups=[group("g", nodes=("n1",))],
        nodes=[node("n1")],
        pods=[pod("there", node="n1"), *pods("p", 2, cpu="3")],
    )
    held.tick()
    shown = msgspec.json.decode(debugging_snapshot(held.state, START))
    assert list(shown) == [
        "NodeList",
        "UnscheduledPodsCanBeScheduled",
        "StartTimestamp",
        "EndTimestamp",
        "TemplateNodes",
    ]
    (found,) = shown["NodeList"]
    assert found["Node"]["metadata"]["name"] == "n1"
    assert [one["metadata"]["name"] for one in found["Pods"]] == ["there", "p-0"]
    assert [one["metadata"]["name"] for one in shown["UnscheduledPodsCanBeScheduled"]] == ["p-0"]
    assert shown["TemplateNodes"]["g"]["Node"]["status"]["allocatable"]["cpu"] == "4"
    assert shown["TemplateNodes"]["g"]["Pods"] is None


def test_what_has_no_item_is_null():
    """Go writes a list that nothing was added to as null; readers of upstream's snapshots see the same."""
    held = World(groups=[])
    held.tick()
    shown = msgspec.json.decode(debugging_snapshot(held.state, START))
    assert (shown["NodeList"], shown["UnscheduledPodsCanBeScheduled"]) == (None, None)


def test_a_failure_says_why():
    """Without a tick there is an error in place of nodes."""
    shown = msgspec.json.decode(failed_snapshot("no tick yet", START))
    assert (shown["Error"], shown["NodeList"], shown["TemplateNodes"]) == ("no tick yet", None, None)
