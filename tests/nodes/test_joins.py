"""Nodes that join: compared with their template, the taints they lose, and how long it takes."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, pod, template
from tests.nodes.learning import C5D, after_restart, joined, joining, of_type, template_for, two_groups

from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.series.template_gauges import TemplateGauges
from kubetide.ports.cloud import GroupOptions
from kubetide.units.exposition import Registry
from kubetide.units.time import minutes, seconds


def test_each_join_is_compared_with_its_template():
    """After a join explain names the promised amounts and their source, what the node has, and how long it took."""
    world = joined()
    found = explain_group(world.state, "b", world.now).learned
    assert found == (
        "1 node joined; ready after 40s the last, 40s the slowest",
        (
            "node b-1 at 2026-03-02T08:01:50Z had memory 16Gi where 4Gi was promised (+300.0%), "
            "by cloud: catalogue: c5d.large, 2 CPU, 4Gi"
        ),
    )
    assert world.state.memory.learned.groups["b"].last_join.errors == {"cpu": 0, "memory": 3, "pods": 0}
    assert [one.code for one in world.reasons].count("NodeJoined") == 1
    world.tick(at=seconds(120), nodes=(joining(ready_at=seconds(40), labels={"a": "b"}),))
    assert world.state.memory.learned.groups["b"].joins == 1


def test_taints_that_nodes_lose_are_left_out_of_the_clouds_template():
    """A taint that the cloud lists and that every node loses does not repel pods from a group at zero."""
    tainted = template(
        cpu="2",
        memory="4Gi",
        labels=C5D,
        spec={"taints": [{"key": key, "effect": "NoSchedule"} for key in ("agent-not-ready", "team")]},
    )
    world = joined(taints=("agent-not-ready",))
    assert world.state.memory.learned.groups["b"].startup_taints == ("agent-not-ready",)
    world = after_restart(world, [group("b", made=tainted)])
    found = template_for(world, "b")
    assert [one.key for one in found.node.spec.taints] == ["team"]


AGENT = {"taints": [{"key": "agent", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(("lost_after", "bought"), [(minutes(4), {"b": 1}), (minutes(20), {})])
def test_a_taint_may_go_after_its_node_is_ready(lost_after, bought):
    """Drivers take minutes: a taint lost within the time of start-up keeps no pod off after a restart; a later one does."""
    said = template(cpu="2", memory="4Gi", labels=C5D, spec=AGENT)
    ready = {"ready_at": seconds(40)}
    world = World(
        nodes=[joining(taints=("agent",))],
        groups=[group("b", made=said, nodes=("b-1",))],
    )
    world.tick(at=seconds(10))
    world.tick(at=seconds(50), nodes=(joining(taints=("agent",), **ready),))
    world.tick(at=minutes(2))
    world.tick(at=lost_after, nodes=(joining(**ready),))
    assert world.state.memory.learned.groups["b"].joins == 1
    world = after_restart(world, [group("b", made=said)], pods=[pod("p")])
    assert world.increases() == bought


def test_a_node_that_was_well_at_the_start_has_not_joined():
    """Nodes that are there and well when the process begins count as no joins."""
    world = World(nodes=[of_type("a-1")], groups=two_groups())
    world.tick()
    assert world.state.memory.learned.groups["a"].joins == 0


def test_a_groups_own_startup_time_holds_for_its_nodes():
    """A node that is not ready counts as not started for as long as its group's options say."""
    options = GroupOptions(max_node_startup_time="1m")
    slow = [joining("b-1"), joining("c-1")]
    world = World(
        nodes=slow, groups=[group("b", nodes=("b-1",), options=options), group("c", nodes=("c-1",))]
    )
    world.tick(at=minutes(2))
    counts = {name: one.counts for name, one in world.state.view.groups.items()}
    assert (counts["b"].unready, counts["c"].unready) == (1, 0)
    assert counts["c"].not_started == ["c-1"]


def test_series_report_the_error_of_the_last_template():
    """The error by resource, the time to ready and the number of joins are reported by group; a deleted group has none."""
    world = joined()
    registry = Registry()
    gauges = TemplateGauges(registry)
    gauges.collect(world.state)
    reported = registry.text().decode()
    assert 'kubetide_node_template_error_ratio{node_group="b",resource="memory"} 3' in reported
    assert 'kubetide_node_time_to_ready_seconds{node_group="b"} 40' in reported
    assert 'kubetide_node_joins_total{node_group="b"} 1' in reported
    world.state.set_groups(())
    gauges.collect(world.state)
    assert 'error_ratio{node_group="b"' not in registry.text().decode()
