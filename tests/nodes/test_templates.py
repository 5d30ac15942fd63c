"""Templates: the amounts that machines have shown, for their group and their type, and which source is trusted."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import START, World, daemon_set, group, node, pod, pods, template

from kubetide.nodes.explain.answers import explain_node, explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.facts.nodes import TEMPLATE_LABEL
from kubetide.nodes.memory import GroupLearned, Learned, SeenAmounts
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.series.template_gauges import TemplateGauges
from kubetide.nodes.state import Delta
from kubetide.nodes.templates.amounts import corrected, merged, of_image, with_amounts
from kubetide.nodes.templates.build import all_templates, template_of
from kubetide.nodes.templates.keeping import learned_document, read_learned
from kubetide.nodes.templates.learning import learn
from kubetide.nodes.templates.sizes import node_sizes
from kubetide.objects.workload import DaemonSet
from kubetide.plan.board import NodeSize
from kubetide.ports.cloud import GroupOptions, Offering
from kubetide.units.exposition import Registry
from kubetide.units.quantity import Quantity
from kubetide.units.time import Instant, after, format_rfc3339, minutes, seconds

TYPE = "node.kubernetes.io/instance-type"
C5D = {TYPE: "c5d.large"}
CATALOGUE = template(cpu="2", memory="4Gi", labels=C5D, source="catalogue: c5d.large, 2 CPU, 4Gi")
DEVICE = "smarter-devices/fuse"
BIG = {"cpu": "500m", "memory": "8Gi"}
OTHERS = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": "rack"}
SPREAD = {**OTHERS, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def of_type(name, *, memory="16Gi", cpu="2", labels=None, **extra):
    """Return a node of type c5d.large that takes no more pods."""
    full = {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}}
    return node(name, cpu=cpu, memory=memory, labels={**C5D, **(labels or {})}, **{**full, **extra})


def sizes_with(**more):
    full = {"cpu": "2", "memory": "16Gi", "pods": "110", **more}
    return {"capacity": full, "allocatable": full}


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
    """A group at zero has the template of a machine of its type in another group, and names that source."""
    world = World(nodes=[of_type("a-1")], pods=[pod("p", **BIG)], groups=two_groups())
    world.change("a", max_size=1)
    assert world.increases() == {"b": 1}
    source = explain_group(world.state, "b", world.now).template
    assert source == (
        f"learned by instance type c5d.large: node a-1 of group a at {format_rfc3339(START)}; "
        "labels and taints by cloud: catalogue: c5d.large, 2 CPU, 4Gi"
    )


def test_groups_of_which_the_cloud_says_other_sizes_do_not_teach_each_other():
    """Where one label names two sizes of machines, each group has the cloud's word for its own."""
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


def test_accelerators_that_the_cloud_says_are_the_groups_own():
    """A machine with one GPU says nothing about a group of its type whose machines get four; of its memory it does."""
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
    found = template_of(world.state, world.state.groups["b"], ()).node.status.allocatable
    assert (found["nvidia.com/gpu"], found["memory"]) == ("4", "16Gi")


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
    """A node without a resource that the group's first node has, or with none of it yet, does not take it away."""
    world = World(
        nodes=[of_type("a-0", status=sizes_with(**{DEVICE: "4"})), of_type("a-1", status=sizes_with(**late))],
        groups=[group("a", made=CATALOGUE, nodes=("a-0", "a-1")), group("b", made=CATALOGUE)],
    )
    world.tick()
    found = template_of(world.state, world.state.groups["a"], ())
    assert found.node.status.allocatable[DEVICE] == "4"
    [learned] = world.state.memory.learned.types["c5d.large"]
    assert learned.allocatable[DEVICE] == "4"


def test_a_group_at_zero_is_similar_to_one_with_nodes():
    """The cloud's template gets the deprecated labels that kubelets set, and every template the label of templates."""
    zone, old = {"topology.kubernetes.io/zone": "z1"}, {"failure-domain.beta.kubernetes.io/zone": "z1"}
    types = {TYPE: "m5.xlarge", "beta.kubernetes.io/instance-type": "m5.xlarge"}
    full = pod("full", cpu="4", node="a-1")
    world = World(
        nodes=[node("a-1", labels={**zone, **old, **types})],
        pods=[full, *pods("p", 3, cpu="3", spec={"nodeSelector": old})],
        groups=[
            group("a", made=template(labels={**zone, TYPE: "m5.xlarge"}), nodes=("a-1",)),
            group("b", made=template(labels={**zone, TYPE: "m5.xlarge"})),
        ],
        settings={"balance_similar_node_groups": True},
    )
    assert world.increases() == {"a": 1, "b": 2}
    for name in "ab":
        labels = template_of(world.state, world.state.groups[name], ()).node.metadata.labels
        assert labels[TEMPLATE_LABEL] == "true"


@pytest.mark.parametrize(("provider", "bought"), [("aws", {"g": 1}), ("gce", {})])
def test_on_aws_tags_name_what_live_nodes_lack(provider, bought):
    """A device that the group's tags name counts, though no node has shown it."""
    tagged = template(status=sizes_with(**{DEVICE: "1"}))
    asked = {"requests": {"cpu": "1", DEVICE: "1"}, "limits": {DEVICE: "1"}}
    spec = {"containers": [{"name": "main", "image": "x", "resources": asked}]}
    world = World(
        nodes=[node("n1")],
        pods=[pod("p", spec=spec)],
        groups=[group("g", made=tagged, nodes=("n1",))],
        settings={"provider": provider},
    )
    assert world.increases() == bought


def test_a_tag_that_cordons_nodes_is_left_out_of_the_template():
    """The taint of a cordoned node says how the node is, not what a new one will be."""
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    world = World(pods=[pod("p")], groups=[group("g", made=template(spec={"taints": [taint]}))])
    assert world.increases() == {"g": 1}


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


YOUNG = {"metadata": {"creationTimestamp": format_rfc3339(START)}}


def joining(name="b-1", *, ready_at=None, taints=(), **kwargs):
    """Return a node that was made at the start: not ready, or ready since then."""
    extra = {
        **YOUNG,
        "spec": {
            "providerID": f"cloud:///{name}",
            "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
        },
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False" if ready_at is None else "True",
                    "lastTransitionTime": format_rfc3339(after(START, ready_at or seconds(0))),
                }
            ]
        },
    }
    return of_type(name, **extra, **kwargs)


def joined(**kwargs):
    """Return a world in which a node of group b has joined after 40 s, with the taints that it lost."""
    world = World(nodes=[joining(**kwargs)], groups=[group("b", made=CATALOGUE, nodes=("b-1",))])
    world.tick(at=seconds(10))
    world.tick(at=seconds(50), nodes=(joining(ready_at=seconds(40)),))
    world.tick(at=seconds(110))
    return world


def test_each_join_is_compared_with_its_template():
    """After a join explain says what was promised by whom, what the node has, and how long it took."""
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
    found = template_of(world.state, world.state.groups["b"], ())
    assert [one.key for one in found.node.spec.taints] == ["team"]


def test_a_node_that_was_well_at_the_start_has_not_joined():
    """Nodes that are there and well when the process begins count as no joins."""
    world = World(nodes=[of_type("a-1")], groups=two_groups())
    world.tick()
    assert world.state.memory.learned.groups["a"].joins == 0


ZONE = "topology.kubernetes.io/zone"
OVER_ZONES = (Offering(instance_type="c5d.large", zone="z1"), Offering(instance_type="c5d.large", zone="z2"))
IN_Z1 = template(cpu="2", memory="16Gi", labels={**C5D, ZONE: "z1"})


@pytest.mark.parametrize(
    ("zones", "settings", "bought"),
    [
        (("z1",), {"group_must_fit_in_every_zone": True}, {}),
        (("z1", "z2"), {"group_must_fit_in_every_zone": True}, {"g": 1}),
        (("z1",), {}, {"g": 1}),
    ],
)
def test_a_group_over_zones_takes_pods_that_may_run_in_each(zones, settings, bought):
    """A pod bound to one zone of several gets no machine that may come in another."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    bound = pod("p", cpu="1", spec={"affinity": {"nodeAffinity": required}})
    world = World(pods=[bound], groups=[group("g", made=IN_Z1, offerings=OVER_ZONES)], settings=settings)
    verdict = explain_pod(world.state, ("default", "p"), world.now).groups[0]
    assert world.increases() == bought
    if not bought:
        assert "the group's next node may be one of z2" in verdict.why


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


def test_what_is_odd_about_a_group_is_said_once():
    """Malformed tags and a spread over zones are one event and a line of explain, and a new one another event."""
    world = World(groups=[group("g", made=IN_Z1, offerings=OVER_ZONES, warnings=("tag x: no number",))])
    world.tick()
    assert world.messages("NodeGroupNotice") == [
        (
            "Node group g: tag x: no number; the cloud decides about its next node, which is in one of the zones z1, z2; "
            "a group for each is predictable"
        )
    ]
    assert len(explain_group(world.state, "g", world.now).notices) == 2
    world.tick(at=seconds(10), nodes=(of_type("y"),))
    assert world.messages("NodeGroupNotice") == []
    world.change("g", warnings=("tag x: no number", "tag y: no number"))
    world.tick(at=seconds(20))
    assert world.messages("NodeGroupNotice") == ["Node group g: tag y: no number"]


def test_no_node_of_a_group_with_an_old_view_goes():
    """While the cloud's view of a group is stale its empty nodes stay, and explain says why."""
    nodes = [of_type("a-1"), of_type("a-2")]
    world = World(
        nodes=nodes,
        groups=[group("a", nodes=("a-1", "a-2"), stale="throttled")],
        settings={"scale_down_delay_after_add": 0},
    )
    for at in (0, 11, 22):
        world.tick(at=minutes(at))
        assert world.state.memory.scale_down.unneeded == {}
    said = explain_node(world.state, "a-1", world.now)
    assert (said.reason, "throttled" in said.sentence) == ("NodeGroupStale", True)
    world.change("a", stale="")
    world.tick(at=minutes(33))
    assert sorted(world.state.memory.scale_down.unneeded) == ["a-1", "a-2"]


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


def test_what_new_nodes_have_left_is_reported_by_size():
    """The pods of DaemonSets are taken off; groups of one size are reported once, those that may have no node not at all."""
    groups = [
        group("a", made=CATALOGUE),
        group("b", made=CATALOGUE),
        group("c", made=template(cpu="8", memory="32Gi")),
        group("none", made=template(cpu="64", memory="256Gi"), maximum=0),
    ]
    world = World(groups=groups, daemon_sets=(daemon_set("agent", cpu="300m", memory="1Gi"),))
    world.tick()
    assert node_sizes(world.state) == (NodeSize(1700, 3 << 30), NodeSize(7700, 31 << 30))


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [OTHERS]}}}, True),
        ({"topologySpreadConstraints": [SPREAD]}, True),
        ({"nodeSelector": {"gpu": "yes"}}, False),
        ({"nodeName": "n1"}, False),
        ({"tolerations": []}, False),
    ],
)
def test_the_rules_of_daemon_sets_say_which_pods_a_new_node_has(spec, runs):
    """Its labels, taints and name count, as for the DaemonSet controller; what only the scheduler asks does not."""
    taints = [{"key": "only", "value": "some", "effect": "NoSchedule"}]
    body = msgspec.to_builtins(daemon_set("agent", cpu="300m"))
    body["spec"]["template"]["spec"] |= {"tolerations": [{"operator": "Exists"}]} | spec
    agent = msgspec.convert(body, DaemonSet)
    world = World(groups=[group("g", made=template(spec={"taints": taints}))], daemon_sets=(agent,))
    world.tick()
    assert [one.metadata.name for one in all_templates(world.state)["g"].pods] == ["agent-pod"] * runs


def test_a_seen_template_expires_by_the_last_tick_with_its_node():
    """--node-info-cache-expire-time counts from the last tick in which there was a good node; until then nothing expires."""
    there = group("g", made=CATALOGUE, nodes=("n0",))
    world = World(nodes=[node("n0")], groups=[there], settings={"node_info_cache_expire_time": minutes(1)})
    # Nodes are looked at where a pod has changed; the last tick is quiet.
    for at, placed in ((0, ()), (90, (pod("p", node="n0"),)), (100, ())):
        world.tick(at=seconds(at), pods=placed)
        assert world.state.memory.templates["g"].live
    world.change("g", instances=(), target_size=0)
    world.tick(at=seconds(110), gone_nodes=["n0"])
    assert world.state.memory.templates["g"].seen_at == after(START, seconds(100))
    world.tick(at=seconds(160), pods=(pod("a", cpu="64"),))
    assert "g" in world.state.memory.templates
    world.tick(at=seconds(161), pods=(pod("b", cpu="64"),))
    assert "g" not in world.state.memory.templates
