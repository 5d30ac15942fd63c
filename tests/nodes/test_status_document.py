"""The status ConfigMap shows what a tick has seen in that very tick, also where nothing is left to do."""

from __future__ import annotations

import yaml
from tests.nodes.frozen import World, group, node, pod

from kubetide.nodes.registry.status_map import without_probes
from kubetide.units.time import seconds


def test_what_changed_is_shown_in_the_tick_that_ends_at_rest():
    """A group's minimum changes, and nothing else happens: the document is written at once, and then no more."""
    names = ["n0", "n1", "n2"]
    world = World(nodes=[node(name) for name in names], groups=[group("g", maximum=9, nodes=names)])
    world.tick(at=seconds(1))
    world.tick(at=seconds(2))
    world.change("g", min_size=1)
    world.status = ""
    world.tick(at=seconds(3))
    assert "minSize: 1" in world.status
    world.status = ""
    world.tick(at=seconds(4))
    assert not world.status


def test_a_tick_that_looks_for_no_unneeded_nodes_shows_those_of_the_last_one():
    """An unhealthy cluster ends the tick early: the candidates stay, also one whose node is gone since."""
    names = [f"n{at}" for at in range(8)]
    world = World(nodes=[node(name) for name in names], groups=[group("g", maximum=9, nodes=names)])
    world.tick(at=seconds(1))
    sick = tuple(node(name, ready=False) for name in names[:5])
    world.change("g", instances=group("g", nodes=names[:7]).instances, target_size=7)
    world.tick(at=seconds(10), nodes=sick, gone_nodes=names[7:])
    assert "ClusterUnhealthy" in {one.code for one in world.reasons}
    assert world.status.count("candidates: 8\n") == 2
    assert world.status.count('lastProbeTime: "2026-03-02T08:00:01Z"') == 2


def test_status_document_counts_and_names_states():
    """The status document has upstream's shape and words."""
    world = World(pods=[pod("a")], groups=[group("g"), group("h", maximum=0)])
    world.tick()
    status = yaml.safe_load(world.status)
    assert status["autoscalerStatus"] == "Running"
    assert status["time"] == "2026-03-02 08:00:00 +0000 UTC"
    assert status["clusterWide"]["scaleUp"]["status"] == "InProgress"
    first, second = status["nodeGroups"]
    assert (first["name"], first["health"]["cloudProviderTarget"], first["scaleUp"]["status"]) == (
        "g",
        1,
        "InProgress",
    )
    assert second["scaleUp"] == {
        "status": "NoActivity",
        "backoffInfo": {},
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


def test_times_of_probing_alone_are_no_change():
    """Without its times of probing a document reads like one that was made without them, at whatever time it is written."""

    def bare(value):
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if key not in {"lastProbeTime", "time"}}
        return [bare(item) for item in value] if isinstance(value, list) else value

    texts = []
    for at in (seconds(0), seconds(10)):
        world = World(pods=[pod("a")], groups=[group("g"), group("time", maximum=0)])
        world.tick(at=at)
        texts.append(world.status)
        assert yaml.safe_load(without_probes(texts[-1])) == bare(yaml.safe_load(texts[-1]))
        assert "- name: time\n" in without_probes(texts[-1])
    assert texts[0] != texts[1]
