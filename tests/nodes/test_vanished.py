"""Nodes whose machines are gone: by themselves, or because they were deleted."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import TAINTED, World, group, node

from kubetide.nodes.decision import AddTaint
from kubetide.ports.cloud import Instance
from kubetide.units.time import minutes


@pytest.mark.parametrize("knows", ["any", "existing", "unknown"])
def test_a_node_whose_machine_is_gone_by_itself_is_in_no_group(knows):
    """As clouds answer upstream: nobody orders the deletion of a machine that there is not, and its node counts as it is."""
    nodes = [node("stays"), node("gone", ready=False)]
    world = World(
        nodes=nodes, groups=[group("g", nodes=["stays", "gone"])], settings={"knows_machines": knows}
    )
    world.tick()
    assert world.state.view.groups["g"].counts.registered == 2
    world.change("g", target_size=1, instances=(Instance(provider_id="cloud:///stays"),), min_size=0)
    for at in (1, 11, 22, 40):
        taints = [one for one in world.tick(at=minutes(at)) if isinstance(one, AddTaint)]
        assert "gone" not in [one.node for one in taints]
    view = world.state.view
    assert (view.groups["g"].counts.registered, view.total.unready, view.total.being_deleted) == (1, 1, 0)


@pytest.mark.parametrize(("knows", "deleted"), [("former", 0), ("groups", 1)])
def test_the_group_of_a_machine_that_is_gone_may_be_remembered(knows, deleted):
    """Who remembers it may be able to say of no machine whether it is there: then the node counts as it is, in its group."""
    world = World(
        nodes=[node("gone")], groups=[group("g", nodes=["gone"])], settings={"knows_machines": knows}
    )
    world.tick()
    world.change("g", target_size=0, instances=())
    world.tick(at=minutes(1))
    counts = world.state.view.groups["g"].counts
    assert (counts.registered, counts.ready, counts.being_deleted) == (1, 1 - deleted, deleted)


@pytest.mark.parametrize("knows", ["any", "existing", "unknown"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_node_that_was_to_be_deleted_is_gone_with_its_machine(knows, is_known):
    """Also where no cloud has ever listed the machine, as after a restart: the taint says so, as upstream."""
    machines = ["gone"] if is_known else []
    world = World(
        nodes=[node("gone", spec=TAINTED)],
        groups=[group("g", nodes=machines)],
        settings={"knows_machines": knows},
    )
    world.tick()
    world.change("g", target_size=0, instances=())
    world.tick(at=minutes(1))
    assert world.state.view.total.being_deleted == 1
    assert world.state.group_of("gone") == ("g" if is_known else None)
