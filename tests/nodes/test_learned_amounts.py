"""The amounts that machines have shown, for their group and their type, and which source is trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pod, template
from tests.nodes.learning import (
    BIG,
    C5D,
    CATALOGUE,
    DEVICE,
    TYPE,
    after_restart,
    memory_of,
    of_type,
    sizes_with,
    template_for,
    two_groups,
)

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.memory import GroupLearned, Learned, SeenAmounts
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.templates.amounts import corrected, merged, of_image, with_amounts
from kubetide.nodes.templates.keeping import learned_document, read_learned
from kubetide.nodes.templates.learning import learn
from kubetide.ports.cloud import Offering
from kubetide.units.quantity import Quantity
from kubetide.units.time import Instant, format_rfc3339, seconds


def test_one_machine_of_a_type_corrects_all_groups_of_it():
    """A group at zero has the template of a machine of its type in another group, and names that source."""
    world = World(nodes=[of_type("a-1")], pods=[pod("p", **BIG)], groups=two_groups())
    world.change("a", max_size=1)
    assert world.increases() == {"b": 1}
    source = explain_group(world.state, "b", world.now).template
    assert source == (
        f"learned by instance type c5d.large: node a-1 of group a at {format_rfc3339(START)}; "
        "labels and taints by cloud: catalogue: c5d.large, 2 CPU, 4Gi"
    )


def test_groups_with_one_type_label_and_different_sizes_do_not_teach_each_other():
    """Where one type label names two sizes of machines, each group has the amounts that the cloud reports for it."""
    smaller = template(cpu="2", memory="2Gi", labels=C5D, source="catalogue: half of it")
    world = World(
        nodes=[of_type("a-1")],
        groups=[group("a", made=CATALOGUE, nodes=("a-1",)), group("b", made=smaller)],
    )
    world.tick()
    assert memory_of(world, "b")[:2] == ("2Gi", "cloud")
    world.change("b", template=CATALOGUE)
    world.tick(at=seconds(10))
    assert memory_of(world, "b")[:2] == ("16Gi", "type")


def test_accelerators_that_the_cloud_reports_are_the_groups_own():
    """A machine with one GPU teaches its memory, and not its GPUs, to a group of its type whose machines get four."""
    one, four = (
        template(labels=C5D, status=sizes_with(**{"memory": "4Gi", "nvidia.com/gpu": count}))
        for count in "14"
    )
    spec = {
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "4"}}}]
    }
    world = World(
        nodes=[of_type("a-1", status=sizes_with(**{"nvidia.com/gpu": "1"}))],
        pods=[pod("p", spec=spec)],
        groups=[group("a", made=one, nodes=("a-1",)), group("b", made=four)],
    )
    assert world.increases() == {"b": 1}
    found = template_for(world, "b").node.status.allocatable
    assert (found["nvidia.com/gpu"], found["memory"]) == ("4", "16Gi")


def test_without_the_flag_each_group_learns_for_itself():
    """With --templates-by-instance-type=false the catalogue holds for a group without nodes, as upstream."""
    world = World(
        nodes=[of_type("a-1")],
        pods=[pod("p", **BIG)],
        groups=two_groups(),
        settings={"templates_by_instance_type": False},
    )
    world.change("a", max_size=1)
    assert world.increases() == {}


def test_without_the_flag_the_first_good_node_is_the_template():
    """With --templates-by-instance-type=false no other node of the group counts, not even one seen before."""
    small, large = of_type("a-0", memory="12Gi"), of_type("a-1")
    world = World(
        nodes=[small, large],
        groups=[group("a", made=CATALOGUE, nodes=("a-0", "a-1"))],
        settings={"templates_by_instance_type": False},
    )
    world.tick()
    assert memory_of(world, "a")[0] == "12Gi"
    world.tick(at=seconds(10), nodes=(of_type("a-0", memory="12Gi", ready=False),))
    assert memory_of(world, "a")[0] == "16Gi"


@pytest.mark.parametrize("late", [{}, {DEVICE: "0"}])
def test_a_device_plugin_that_registers_late_hides_nothing(late):
    """A resource of the group's first node stays in the template while a newer node lacks it or reports 0 of it."""
    world = World(
        nodes=[of_type("a-0", status=sizes_with(**{DEVICE: "4"})), of_type("a-1", status=sizes_with(**late))],
        groups=[group("a", made=CATALOGUE, nodes=("a-0", "a-1")), group("b", made=CATALOGUE)],
    )
    world.tick()
    found = template_for(world, "a")
    assert found.node.status.allocatable[DEVICE] == "4"
    [learned] = world.state.memory.learned.types["c5d.large"]
    assert learned.allocatable[DEVICE] == "4"


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


@pytest.mark.parametrize("asked", [{DEVICE: "1"}, {"hugepages-2Mi": "100Mi"}])
def test_what_only_the_groups_own_nodes_had_outlives_the_process(asked):
    """A device, or huge pages, that no tag names: the group is bought for it after a restart too; another of its type is not."""
    shown = sizes_with(**{DEVICE: "4", "hugepages-2Mi": "1Gi"})
    world = World(nodes=[of_type("a-1", status=shown)], groups=two_groups())
    world.tick()
    resources = {"requests": {"cpu": "1", **asked}, "limits": asked}
    spec = {"containers": [{"name": "main", "image": "x", "resources": resources}]}
    groups = [group("a", made=CATALOGUE), group("b", made=CATALOGUE)]
    world = after_restart(world, groups, pods=[pod("p", spec=spec)])
    assert world.increases() == {"a": 1}


def test_a_node_of_no_group_teaches_too():
    """A machine that is in no node group shows what its type has."""
    world = World(nodes=[of_type("alone")], groups=[group("b", made=CATALOGUE)], pods=[pod("p", **BIG)])
    assert world.increases() == {"b": 1}


def test_the_least_that_was_seen_is_promised():
    """The smaller of two machines of a type is the expected new node."""
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
    world = World(nodes=[of_type("x", created=format_rfc3339(START))], groups=[group("b", made=CATALOGUE)])
    for at in (0, 30, 60, 70):
        world.tick(at=seconds(at))
    assert memory_of(world, "b")[:2] == ("16Gi", "type")


def test_another_image_teaches_nothing():
    """A Windows machine of the type changes nothing about a Linux machine."""
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
    """Pods and extended resources are settings of a group: the smaller of the cloud's and the seen amount counts."""
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


def reported(entries):
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
    assert reported(after_all(shuffled)) == reported(known)
    assert all(with_amounts(known, one, 100) is None for one in seen)
    both = merged(Learned(types={"t": known}), Learned(types={"t": after_all(seen[:3])}))
    assert reported(both.types["t"]) == reported(known)[: len(both.types["t"])]


def test_images_that_are_not_reported_apart_count_together():
    """Where a template says nothing of its image the least over all images holds."""
    entries = (
        SeenAmounts(instance_type="t", image={"kubernetes.io/os": "linux"}, allocatable={"memory": "9"}),
        SeenAmounts(instance_type="t", image={"kubernetes.io/os": "windows"}, allocatable={"memory": "8"}),
    )
    assert of_image(entries, {}).allocatable == {"memory": "8"}
    assert of_image(entries, {"kubernetes.io/os": "linux"}).allocatable == {"memory": "9"}
    assert of_image(entries, {"kubernetes.io/os": "bsd"}) is None


def test_the_least_over_the_types_of_a_group_is_promised():
    """A group whose next node may be of two types promises what the smaller of the machines that were seen has."""
    either = (Offering(instance_type="c5d.large"), Offering(instance_type="m5.large"))
    small = node("x", cpu="2", memory="8Gi", labels={TYPE: "m5.large"})
    world = World(
        nodes=[of_type("a-1"), small],
        groups=[group("g", made=CATALOGUE, nodes=("a-1",), offerings=either)],
    )
    world.tick()
    amount, origin, source = memory_of(world, "g")
    assert (amount, origin) == ("8Gi", "live")
    assert source == "live node a-1; the least of c5d.large, m5.large"


def test_the_document_is_bounded_and_the_newest_stays():
    """A document that would be too large loses groups before types, and what is oldest first."""
    types = {
        f"t{at}": (SeenAmounts(instance_type=f"t{at}", seen_at=Instant(at), allocatable={"cpu": "1"}),)
        for at in range(50)
    }
    learned = Learned(types=types, groups={"g": GroupLearned(joins=1)})
    assert read_learned(learned_document(learned)) == learned
    small = read_learned(learned_document(learned, most=1000))
    assert small.groups == {}
    assert list(small.types) == [f"t{at}" for at in sorted(range(50 - len(small.types), 50), key=str)]
    assert len(learned_document(learned, most=1000)) <= 1000


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"types": {"t": [{"instance_type": "t", "capacity": {"cpu": "much"}}]}}'],
)
def test_a_document_that_is_not_ours_is_refused(text):
    """A document that cannot be read is an error that says where."""
    with pytest.raises(ValueError, match=r"."):
        read_learned(text)


def test_a_group_that_is_discovered_after_its_nodes_learns_from_them():
    """Nodes that were well before their group had a tag teach it as well, so that a restart with the group at zero knows them."""
    made = template(cpu="2", memory="4Gi")
    world = World(nodes=[node("b-1", cpu="2", memory="3Gi")])
    world.tick(at=seconds(60))
    world.groups["b"] = group("b", made=made, nodes=("b-1",))
    world.tick(at=seconds(120))
    world = after_restart(world, [group("b", made=made)])
    assert memory_of(world, "b")[:2] == ("3Gi", "group")


def test_nodes_that_share_their_amounts_teach_as_if_each_were_looked_at():
    """Amounts that are one object for many nodes lead to the same memory as equal ones that are read again."""
    alike = of_type("n1", cpu="2", memory="16Gi")
    nodes = [
        alike,
        of_type("n2", cpu="4", memory="12Gi"),
        replace(of_type("n3"), status=alike.status),
    ]
    world = World(nodes=nodes, groups=[group("g", made=CATALOGUE, nodes=("n1", "n2", "n3"))])
    copy = copy_state(world.state)
    assert learn(world.state, START) == learn(copy, START)
    assert world.state.memory.learned == copy.memory.learned
    assert world.state.memory.learned.types["c5d.large"][0].from_node == "n2"
