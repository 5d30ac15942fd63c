"""Amounts that no machine has: they teach nothing, and no limit is raised for them."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, group, node, pod, template

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.templates.build import template_of
from kubetide.nodes.templates.keeping import learned_document, read_learned

C5D = {"node.kubernetes.io/instance-type": "c5d.large"}
CATALOGUE = template(cpu="2", memory="4Gi", labels=C5D)


@pytest.mark.parametrize(
    ("resource", "amount"), [("cpu", "0"), ("memory", "0"), ("cpu", "1e300"), ("memory", "2Pi")]
)
def test_a_node_with_amounts_that_no_machine_has_teaches_nothing(resource, amount):
    """A kubelet that cannot read its machine reports 0: neither its group nor its type expects that of new nodes."""
    there = [node("a-0", labels=C5D, **{resource: amount}), node("a-1", cpu="2", labels=C5D)]
    world = World(
        nodes=there, groups=[group("a", nodes=["a-0", "a-1"], made=CATALOGUE), group("b", made=CATALOGUE)]
    )
    world.tick()
    for name, origin in (("a", "live"), ("b", "type")):
        made = template_of(world.state, world.state.groups[name], ())
        assert made.origin == origin
        assert {made.node.status.allocatable[one] for one in ("cpu", "memory")} == {"2", "16Gi"}
    learned = read_learned(learned_document(world.state.memory.learned))
    assert learned == world.state.memory.learned
    assert [one.from_node for one in learned.types["c5d.large"]] == ["a-1"]


def test_without_learning_the_first_good_node_is_the_template_as_it_is():
    """With --templates-by-instance-type=false an odd node is a template, as upstream."""
    world = World(
        nodes=[node("a-0", memory="0", labels=C5D)],
        groups=[group("a", nodes=["a-0"], made=CATALOGUE)],
        settings={"templates_by_instance_type": False},
    )
    world.tick()
    assert template_of(world.state, world.state.groups["a"], ("a-0",)).node.status.capacity["memory"] == "0"


def test_no_limit_is_raised_for_a_machine_that_does_not_exist():
    """A cloud's template of absurd size exceeds a limit, and explain proposes no limit that would admit it."""
    absurd = template(cpu="1e300", memory="4Gi", labels=C5D)
    world = World(groups=[group("a", made=absurd)], pods=[pod("web-1", cpu="1")])
    assert world.increases() == {}
    assert "--cores-total" in str(explain_group(world.state, "a", world.now))
    assert "raise --cores-total" not in str(explain_pod(world.state, ("default", "web-1"), world.now))
