"""Explanations of pods and groups, and the changes that would help."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, World, deployment, group, node, pod, template

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.nodes.reasons import VOCABULARY
from kubetide.nodes.records.export import export_state
from kubetide.plan.board import Intent, Workload
from kubetide.units.time import after, minutes, seconds

C5D = template(cpu="2", memory="4Gi", source="catalogue of 2026-08: c5d.large has 2 CPU and 4Gi of memory")


@pytest.mark.parametrize(
    ("pods", "groups", "sentence"),
    [
        ([pod("a")], [group("g")], "Group g would take it: the loop chooses g."),
        ([pod("a")], [group("g"), group("h")], "Groups g, h would take it: the loop draws one of g, h."),
        (
            [
                pod("a", spec={"nodeSelector": {"disk": "ssd"}}),
                *(pod(f"big-{number}", cpu="6") for number in range(3)),
            ],
            [group("g", made=template(labels={"disk": "ssd"})), group("wide", made=template(cpu="6"))],
            "Group g would take it: the loop chooses wide first, for other pods.",
        ),
    ],
    ids=["one", "chance", "for others"],
)
def test_what_the_loop_does_for_a_pod_that_a_group_takes(pods, groups, sentence):
    """The answer names the group that the loop chooses; upstream's word for a scale-up that has not run yet tells nothing."""
    world = World(pods=pods, groups=groups, settings={"expander": "most-pods"})
    assert explained(world).sentence == sentence


def test_a_cloud_without_groups_is_named_as_what_is_wrong():
    """A pod that waits where no group is found says so, and so does the page of all."""
    world = World(pods=[pod("a")])
    text = "the cloud has no node groups; check what names or finds them"
    assert explained(world).sentence.startswith(f"No group takes it: {text}")
    core = type("Core", (), {"state": world.state})
    groups, *_ = OVERVIEW.tables(core, world.now)
    assert groups.sentence.lower().startswith(text)


def test_a_choice_that_an_expander_service_makes_is_not_foretold():
    """Nothing is asked of it for an explanation."""
    settings = {"expander": "grpc", "grpc_expander_url": "localhost:1"}
    world = World(pods=[pod("a")], groups=[group("g"), group("h")], settings=settings)
    assert explained(world).sentence == "Groups g, h would take it: the expander grpc is asked which of g, h."


def explained(world, name="a"):
    return explain_pod(world.state, ("default", name), world.now)


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        pytest.param(
            {"pods": [pod("a", memory="6Gi")], "groups": [group("g", made=C5D)]},
            "lower memory request from 6Gi to <= 4Gi",
            id="memory",
        ),
        pytest.param(
            {"pods": [pod("a", cpu="6", memory="20Gi")], "groups": [group("g")]},
            "lower cpu request from 6 to <= 4 and lower memory request from 20Gi to <= 16Gi",
            id="cpu and memory",
        ),
        pytest.param(
            {
                "pods": [pod("a"), pod("b", cpu="4", node="n1")],
                "nodes": [node("n1")],
                "groups": [group("g", maximum=1, nodes=["n1"])],
            },
            "raise max of group g from 1 to 2",
            id="maximum",
        ),
        pytest.param(
            {
                "pods": [pod("a")],
                "groups": [
                    group(
                        "g",
                        made=template(
                            spec={"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
                        ),
                    )
                ],
            },
            "tolerate taint gpu=yes:NoSchedule",
            id="taint",
        ),
        pytest.param(
            {"pods": [pod("a", spec={"nodeSelector": {"disk": "ssd"}})], "groups": [group("g")]},
            "add label disk=ssd to the nodes of group g",
            id="label",
        ),
        pytest.param(
            {"pods": [pod("a")], "groups": [group("g")], "settings": {"cores_total": "0:3"}},
            "raise --cores-total from 0:3 to 0:4",
            id="limit",
        ),
        pytest.param(
            {
                "pods": [pod("a", cpu="6", spec={"nodeSelector": {"disk": "ssd"}})],
                "groups": [group("g", maximum=0)],
            },
            "raise max of group g from 0 to 1 and add label disk=ssd to the nodes of group g and lower cpu request from 6 to <= 4",
            id="three things at once",
        ),
    ],
)
def test_smallest_change_is_named_and_verified(fields, change):
    """The reason that blocks a pod comes with the change that would help, and that change was tried."""
    world = World(**fields)
    assert world.increases() == {}
    found = explained(world)
    assert found.way_out is not None
    assert found.way_out.text == change
    assert found.way_out.verified


def test_a_change_that_helps_does_help():
    """A pod that requests as much as the explanation says would fit gets a node."""
    world = World(pods=[pod("a", memory="6Gi")], groups=[group("g", made=C5D)])
    assert world.increases() == {}
    assert world.increases(pods=[pod("a", memory="4Gi")]) == {"g": 1}


def test_nothing_is_changed_by_asking():
    """Explaining leaves the state as it was, byte for byte."""
    world = World(pods=[pod("a", memory="60Gi")], groups=[group("g"), group("h", maximum=0)])
    world.tick()
    before, version = export_state(world.state), world.state.snapshot.version
    explained(world)
    explain_group(world.state, "g", world.now)
    assert export_state(world.state) == before
    assert world.state.snapshot.version == version


def test_no_help_is_offered_where_none_is_known():
    """No change of a request or of a group brings a pod that is not there; nothing unverified is offered."""
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": one}}}
        for one in ("nobody", "nobody-else")
    ]
    body = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    world = World(pods=[pod("a", spec=body)], groups=[group("g")])
    world.tick()
    found = explained(world)
    assert found.status == "refused"
    assert found.way_out is None


def test_machine_is_believed_over_the_catalogue():
    """From zero the catalogue refuses and is named; after one live node of 16Gi the same group accepts."""
    world = World(pods=[pod("a", memory="8Gi")], groups=[group("c5d", made=C5D)])
    assert world.increases() == {}
    refused = explained(world)
    assert refused.groups[0].template == "cloud: catalogue of 2026-08: c5d.large has 2 CPU and 4Gi of memory"
    assert "8Gi requested, 4Gi free of 4Gi allocatable" in refused.groups[0].why
    live = node("c5d-1", cpu="2", memory="16Gi")
    busy = pod("b", memory="10Gi", node="c5d-1")
    world.groups["c5d"] = group("c5d", made=C5D, nodes=["c5d-1"])
    assert world.increases(nodes=(live,), pods=(busy,)) == {"c5d": 1}
    assert explain_group(world.state, "c5d", world.now).template == "live node c5d-1"
    assert explain_group(world.state, "c5d", world.now).differs == (
        "memory: 16Gi on node c5d-1, 4Gi by catalogue of 2026-08: c5d.large has 2 CPU and 4Gi of memory",
    )


def test_template_is_remembered_after_the_last_node():
    """A group at zero is evaluated by the node it once had."""
    world = World(
        nodes=[node("c5d-1", cpu="2", memory="16Gi")], groups=[group("c5d", made=C5D, nodes=["c5d-1"])]
    )
    world.tick()
    world.groups["c5d"] = group("c5d", made=C5D)
    world.state.apply(_deleted("c5d-1"))
    assert world.increases(at=minutes(5), pods=(pod("a", memory="8Gi"),)) == {"c5d": 1}
    source = explain_group(world.state, "c5d", world.now).template
    assert source == "seen earlier on node c5d-1, last at 2026-03-02T08:00:00Z"


def _deleted(name):
    from kubetide.nodes.state import Delta, Gone

    return Delta(gone=Gone(nodes=(name,)))


def test_backoff_names_its_end():
    """A group that failed says until when it is left out, and that waiting is what helps."""
    world = World(pods=[pod("a")], groups=[group("g")])
    world.refused["g"] = "no machines left"
    world.tick()
    found = explained(world)
    assert found.way_out is not None
    assert found.way_out.text == (
        "wait until 2026-03-02T08:05:00Z, when the backoff of group g ends "
        "(failed to increase node group size: no machines left)"
    )


def test_of_equal_ways_out_the_cheaper_node_is_the_headline():
    """Two groups that need the same change: the one with the lower price is offered, whatever its name."""
    world = World(
        pods=[pod("a", memory="6Gi")],
        groups=[
            group("a-dear", made=C5D, price_per_hour=2.0),
            group("b-unknown", made=C5D),
            group("z-cheap", made=C5D, price_per_hour=0.1),
        ],
    )
    found = explained(world)
    assert found.way_out is not None
    assert found.way_out.group == "z-cheap"
    assert "(group z-cheap)" in found.sentence


def test_of_equal_waits_the_soonest_is_the_headline():
    """The answer for two groups in backoff names the one whose backoff ends first, whatever its name."""
    world = World(pods=[pod("a")], groups=[group("a-later"), group("sooner")])
    world.refused.update({"a-later": "stock-out", "sooner": "stock-out"})
    world.tick()
    for name, until in (("a-later", minutes(9)), ("sooner", minutes(5))):
        entry = world.state.memory.backoff.get(name) or world.state.memory.backoff["sooner"]
        world.state.memory.backoff[name] = replace(entry, until=after(world.now, until))
    world.tick(at=minutes(1))
    found = explained(world)
    assert found.way_out is not None
    assert found.way_out.group == "sooner"
    assert found.way_out.needs_delivery
    assert "wait until 2026-03-02T08:05:00Z" in found.sentence


def test_replicas_to_come_are_named_in_words():
    """A refusal of a pod that does not exist yet names its workload, not a made-up pod."""
    world = World(
        groups=[group("g", made=C5D)],
        deployments=(deployment("web", 2, memory="6Gi"),),
        settings={"demand_sources": ("pending", "intents")},
    )
    workload = Workload("default", "Deployment", "web")
    world.tick(intents=(Intent(workload=workload, replicas=2, due=START, source="horizontal"),))
    world.tick(at=seconds(10))
    texts = [VOCABULARY.text(one) for command in world.commands for one in command.reasons]
    assert (
        "group g cannot hold a pod of default/web that is still to be created: Insufficient memory" in texts
    )


def test_a_zone_is_not_a_label_that_somebody_adds():
    """A pod for a zone without a group: a group there or no such selector is offered, not other labels on nodes."""
    where = {"nodeSelector": {"topology.kubernetes.io/zone": "zone-c", "disk": "ssd"}}
    world = World(pods=[pod("a", spec=where)], groups=[group("g")])
    assert world.increases() == {}
    found = explained(world)
    assert found.way_out is not None
    assert found.way_out.verified
    assert found.way_out.text == (
        "add label disk=ssd to the nodes of group g and add a group like g in zone zone-c, or drop "
        "topology.kubernetes.io/zone=zone-c from the pod's node selector"
    )


def test_a_pod_of_another_size_needs_other_machines():
    """Nobody makes a pod of 64 cores one of 4: a machine type that holds it is offered, and verified."""
    world = World(pods=[pod("a", cpu="64")], groups=[group("g")])
    assert world.increases() == {}
    found = explained(world)
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == (
        "add a group like g with a larger machine type: 64 cpu allocatable or more",
        True,
    )


def test_the_cheapest_help_comes_first():
    """The change of one setting is offered before a new group."""
    big = group("large", maximum=0, made=template(cpu="96", memory="384Gi"))
    world = World(pods=[pod("a", cpu="64")], groups=[group("g"), big])
    assert world.increases() == {}
    found = explained(world)
    assert found.way_out is not None
    assert found.way_out.text == "raise max of group large from 0 to 1"
