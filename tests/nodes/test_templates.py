"""Templates: what machines have shown, for their group and their type, and who is trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pod, template

from kubetide.nodes.explain.answers import explain_group, explain_pod
from kubetide.nodes.memory import Learned, SeenAmounts
from kubetide.nodes.state import Delta
from kubetide.nodes.templates.amounts import corrected, merged, of_image, with_amounts
from kubetide.nodes.templates.template import template_of
from kubetide.units.quantity import Quantity
from kubetide.units.time import format_rfc3339, seconds

TYPE = "node.kubernetes.io/instance-type"
C5D = {TYPE: "c5d.large"}
CATALOGUE = template(cpu="2", memory="4Gi", labels=C5D, source="catalogue: c5d.large, 2 CPU, 4Gi")
BIG = {"cpu": "500m", "memory": "8Gi"}


def of_type(name, *, memory="16Gi", cpu="2", labels=None, **extra):
    """Gives a node of type c5d.large that takes no more pods."""
    full = {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}}
    return node(name, cpu=cpu, memory=memory, labels={**C5D, **(labels or {})}, **{**full, **extra})


def two_groups(**fields):
    return [group("a", made=CATALOGUE, nodes=("a-1",)), group("b", made=CATALOGUE, **fields)]


def after_restart(world, groups, **objects):
    """A new process that knows only what the last one has learned."""
    made = World(groups=groups, **objects)
    made.state.apply(Delta(learned=world.state.memory.learned))
    return made


def memory_of(world, name):
    found = template_of(world.state, world.state.groups[name], ())
    return found.node.status.allocatable["memory"], found.origin, found.source


def test_one_machine_of_a_type_corrects_all_groups_of_it():
    """A group at zero answers by what a machine of its type has shown in another group, and says whose word it is."""
    world = World(nodes=[of_type("a-1")], pods=[pod("p", **BIG)], groups=two_groups())
    world.change("a", max_size=1)
    assert world.increases() == {"b": 1}
    source = explain_group(world.state, "b", world.now).template
    assert source == (
        f"learned by instance type c5d.large: node a-1 of group a at {format_rfc3339(START)}; "
        "labels and taints by cloud: catalogue: c5d.large, 2 CPU, 4Gi"
    )


def test_without_the_flag_each_group_learns_for_itself():
    """With --templates-by-instance-type=false the catalogue's word holds for a group without nodes, as upstream."""
    world = World(
        nodes=[of_type("a-1")],
        pods=[pod("p", **BIG)],
        groups=two_groups(),
        settings={"templates_by_instance_type": False},
    )
    world.change("a", max_size=1)
    assert world.increases() == {}


def test_what_was_learned_outlives_the_process():
    """After a restart both groups of the type are at zero and answer by the machine that the last process saw."""
    world = World(nodes=[of_type("a-1")], groups=two_groups())
    world.tick()
    world = after_restart(
        world, [group("a", made=CATALOGUE), group("b", made=CATALOGUE)], pods=[pod("p", **BIG)]
    )
    assert memory_of(world, "a")[:2] == ("16Gi", "group")
    assert memory_of(world, "b")[:2] == ("16Gi", "type")
    assert memory_of(world, "a")[2].startswith("learned by group: node a-1 at ")
    verdicts = explain_pod(world.state, ("default", "p"), world.now).groups
    assert [one.takes for one in verdicts] == [True, True]
    assert verdicts[1].template.startswith("learned by instance type c5d.large: node a-1 of group a")
    assert len(world.increases()) == 1


def test_a_node_of_no_group_teaches_too():
    """A machine that is in no node group shows what its type has."""
    world = World(nodes=[of_type("alone")], groups=[group("b", made=CATALOGUE)], pods=[pod("p", **BIG)])
    assert world.increases() == {"b": 1}


def test_the_least_that_was_seen_is_promised():
    """Of two machines of a type the smaller one is what a new node is expected to be."""
    world = World(nodes=[of_type("a-1"), of_type("x", memory="12Gi")], groups=two_groups())
    world.tick()
    assert memory_of(world, "b")[0] == "12Gi"


@pytest.mark.parametrize(
    "unwell",
    [
        {"ready": False},
        {"spec": {"unschedulable": True}},
        {"created": format_rfc3339(START)},
    ],
)
def test_only_well_nodes_teach(unwell):
    """A node that is not ready, cordoned or too young teaches nothing."""
    world = World(nodes=[of_type("x", **unwell)], groups=[group("b", made=CATALOGUE)])
    world.tick()
    assert memory_of(world, "b")[:2] == ("4Gi", "cloud")


def test_a_young_node_teaches_by_the_passing_of_time():
    """A node that nothing more happens to teaches once it has been ready for a minute."""
    world = World(
        nodes=[of_type("x", created=format_rfc3339(START))], groups=[group("b", made=CATALOGUE)]
    )
    for at in (0, 30, 60, 70):
        world.tick(at=seconds(at))
    assert memory_of(world, "b")[:2] == ("16Gi", "type")


def test_another_image_teaches_nothing():
    """A Windows machine of the type says nothing of what is left on a Linux machine."""
    linux = template(cpu="2", memory="4Gi", labels={**C5D, "kubernetes.io/os": "linux"})
    world = World(
        nodes=[of_type("x", labels={"kubernetes.io/os": "windows"})], groups=[group("b", made=linux)]
    )
    world.tick()
    assert memory_of(world, "b")[:2] == ("4Gi", "cloud")
    world.tick(at=seconds(10), nodes=(of_type("y", memory="15Gi", labels={"kubernetes.io/os": "linux"}),))
    assert memory_of(world, "b")[:2] == ("15Gi", "type")


def test_what_the_groups_kubelet_reserves_stays_reserved():
    """A reservation that the cloud knows of the group is taken off what machines of the type have."""
    said = replace(CATALOGUE.node.status, capacity={"memory": "4Gi"}, allocatable={"memory": "3Gi"})
    seen = SeenAmounts(
        instance_type="c5d.large", capacity={"memory": "16Gi"}, allocatable={"memory": "15900Mi"}
    )
    found = corrected(replace(CATALOGUE.node, status=said), seen)
    assert found.status.capacity["memory"] == "16Gi"
    assert Quantity.parse(found.status.allocatable["memory"]) == Quantity.parse("15Gi")


def test_what_a_group_decides_is_not_enlarged():
    """Pods and extended resources are settings of a group: the less of what is said and what was seen holds."""
    said = {"cpu": "2", "pods": "32", "nvidia.com/gpu": "1", "example.com/card": "4"}
    node_said = replace(CATALOGUE.node.status, capacity=said, allocatable=said)
    real = {"cpu": "4", "memory": "15Gi", "pods": "110", "nvidia.com/gpu": "2", "example.com/card": "3"}
    seen = SeenAmounts(instance_type="c5d.large", capacity=real, allocatable=real)
    found = corrected(replace(CATALOGUE.node, status=node_said), seen).status.allocatable
    assert found == {
        "cpu": "4",
        "memory": "15Gi",
        "pods": "32",
        "nvidia.com/gpu": "1",
        "example.com/card": "3",
    }


amounts = st.builds(
    SeenAmounts,
    instance_type=st.sampled_from(["c5d.large", "m5.large"]),
    image=st.sampled_from([{}, {"kubernetes.io/os": "linux"}, {"kubernetes.io/os": "windows"}]),
    allocatable=st.dictionaries(
        st.sampled_from(["cpu", "memory", "pods"]), st.integers(0, 9).map(lambda n: f"{n}")
    ),
    from_node=st.sampled_from(["n1", "n2"]),
)


def told(entries):
    return [(one.instance_type, one.image, one.allocatable) for one in entries]


@given(st.lists(amounts, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_looking_does_not_count(seen, order):
    """Machines teach the same in any order, and looking again teaches nothing."""

    def after_all(each):
        known = ()
        for one in each:
            known = with_amounts(known, one, 100) or known
        return known

    known = after_all(seen)
    shuffled = list(seen)
    order.shuffle(shuffled)
    assert told(after_all(shuffled)) == told(known)
    assert all(with_amounts(known, one, 100) is None for one in seen)
    both = merged(Learned(types={"t": known}), Learned(types={"t": after_all(seen[:3])}))
    assert told(both.types["t"]) == told(known)[: len(both.types["t"])]


def test_images_that_are_not_told_apart_count_together():
    """Where a template says nothing of its image the least over all images holds."""
    entries = (
        SeenAmounts(instance_type="t", image={"kubernetes.io/os": "linux"}, allocatable={"memory": "9"}),
        SeenAmounts(instance_type="t", image={"kubernetes.io/os": "windows"}, allocatable={"memory": "8"}),
    )
    assert of_image(entries, {}).allocatable == {"memory": "8"}
    assert of_image(entries, {"kubernetes.io/os": "linux"}).allocatable == {"memory": "9"}
    assert of_image(entries, {"kubernetes.io/os": "bsd"}) is None
