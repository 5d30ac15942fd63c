"""The expanders that upstream calls priority and price: what wins, what is reported, what is left out."""

from __future__ import annotations

import msgspec
import pytest
from tests.nodes.frozen import START, World, group, node, pod, pods, replica_set, template

from kubetide.clouds.gce.prices import pod_prices
from kubetide.nodes.decision import AskExpander, IncreaseSize, Outcome
from kubetide.nodes.expander.price import pod_price
from kubetide.nodes.expander.priority import PrioritiesError, read_priorities
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.facts.slimming import slim_stateful_set
from kubetide.nodes.reasons import VOCABULARY
from kubetide.objects.batch import Job
from kubetide.objects.statefulset import StatefulSet
from kubetide.ports.cloud import NodeTemplate, PodPrices
from kubetide.units.time import ZERO, after, format_rfc3339, minutes

SERVICE = {"grpc_expander_url": "expander:7000", "grpc_expander_cert": "cert.pem"}


class PrefersFirst(World):
    """A world whose expander service prefers the first group that it is asked about."""

    def _do(self, action):
        outcome = super()._do(action)
        return Outcome(groups=action.groups[:1]) if isinstance(action, AskExpander) else outcome


def world_of(text, *, expander="priority", groups=("od", "spot-a", "spot-b"), made_by=World, **settings):
    found = PriorityMap(found=True, uid="u", priorities=text)
    return made_by(
        groups=[group(name) for name in groups],
        pods=[pod("p")],
        settings={"expander": expander, **settings},
        priority_map=found,
    )


def grown(world):
    return {one.group for one in world.tick() if isinstance(one, IncreaseSize)}


def warnings(world):
    return [one.reason for one in world.events if one.name == "cluster-autoscaler-priority-expander"]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("10: [od]\n50: [spot-b]", "spot-b"),
        ("10: ['.*']\n50: ['d$']\n60: [spot-c]\n70: ['^pot']", "od"),
        ("10: [od]\n5: [spot]\n60: [spot-a]", "spot-a"),
        ("0: [spot-a]\n-5: [od]", "spot-a"),
    ],
)
def test_the_highest_number_that_matches_wins(text, chosen):
    """An expression is found anywhere in the group's name; a group counts by its highest number."""
    assert grown(world_of(text)) == {chosen}


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (None, ["PriorityConfigMapInvalid"]),
        ("", ["PriorityConfigMapInvalid"]),
        ("10: ['(']", ["PriorityConfigMapInvalid"]),
        ("10: spot", ["PriorityConfigMapInvalid"]),
        ("-2: [od, spot]", ["PriorityConfigMapNoGroupMatched"]),
        ("10: [spot]", ["PriorityConfigMapNotMatchedGroup"]),
    ],
)
def test_a_map_that_is_wrong_is_reported_and_holds_nothing_up(text, reported):
    """Whatever the map says some group grows, and an event on it says what is wrong."""
    world = world_of(text)
    (group,) = grown(world)
    assert warnings(world) == reported
    why = [one for one in world.reasons if one.code == "PrioritiesIgnored"]
    is_partly_used = reported == ["PriorityConfigMapNotMatchedGroup"]
    assert [one.subject for one in why] == ([] if is_partly_used else [group])


def test_without_a_map_the_decision_says_so():
    """Upstream writes no event then: the object that it would be about is not there."""
    world = World(groups=[group("a")], pods=[pod("p")], settings={"expander": "priority"})
    assert grown(world) == {"a"}
    (why,) = [one for one in world.reasons if one.code == "PrioritiesIgnored"]
    assert VOCABULARY.text(why) == (
        "group a: the expander priority left all groups: "
        "ConfigMap kube-system/cluster-autoscaler-priority-expander is not there, or may not be read"
    )
    assert warnings(world) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x: [y", "yaml: line 1: did not find expected ',' or ']'"),
        ("abc: [x]", "cannot unmarshal number abc into Go value of type int"),
        ("[a]", r"cannot unmarshal array into Go value of type map\[int\]\[\]string"),
        ("1: {a: b}", r"cannot unmarshal object into Go value of type \[\]string"),
        ("1: [[a]]", "cannot unmarshal array into Go value of type string"),
        ("1: ['a{2,1}']", "Can't compile regexp rule for priority 1 and rule a"),
        ("1: [2026-13-45]\n2: 2026-13-45", "Can't parse YAML"),
    ],
)
def test_what_cannot_be_read_is_said_in_upstream_s_words(text, problem):
    """Every kind of wrong document ends in one error that says where."""
    with pytest.raises(PrioritiesError, match=problem):
        read_priorities(text)


def test_only_the_first_document_counts():
    """A second YAML document is passed over, as by upstream's reader."""
    assert list(read_priorities("---\n10: [a]\n---\n20: [b]\n")) == [10]


def priced(name, price, *, cpu="4", **labels):
    return group(name, made=template(cpu=cpu, labels=labels or None), price_per_hour=price)


def test_price_takes_the_cheaper_of_two_alike():
    """The cheaper of two groups with the same machines grows."""
    world = World(
        groups=[priced("a", 0.3), priced("b", 0.2)], pods=[pod("p")], settings={"expander": "price"}
    )
    assert grown(world) == {"b"}


def test_price_prefers_machines_that_suit_the_cluster():
    """A machine far larger than a small cluster prefers costs more than its price."""
    groups = [priced("large", 0.2, cpu="64"), priced("small", 0.3, cpu="1")]
    world = World(groups=groups, pods=[pod("p")], settings={"expander": "price"})
    assert grown(world) == {"small"}


def test_a_cloud_may_price_disks_and_gpus_of_pods():
    """A machine with GPUs costs more than its cores alone, where the cloud says what a GPU costs."""
    requests = {"cpu": 500, "memory": 1 << 30, "ephemeral-storage": 10 << 30, "nvidia.com/gpu": 2}
    plain = 0.5 * 0.033174 + 0.004446
    assert pod_price(requests, PodPrices()) == pytest.approx(plain)
    gce = pod_prices()
    assert pod_price(requests, gce) == pytest.approx(plain + 10 * gce.storage_gib_hour + 2 * gce.gpu_hour)


def test_without_any_price_no_group_is_chosen_and_the_reason_says_so():
    """A group without a price is left out; where all are, nothing grows, and the pods are told."""
    for expander in ("price", "price,grpc"):
        world = World(
            groups=[group("a"), group("b")], pods=[pod("p")], settings={"expander": expander, **SERVICE}
        )
        assert grown(world) == set()
        assert any(one.code == "NoneRated" for one in world.reasons)
        text = "2 expansion options filtered out and no longer considered"
        assert world.messages("NotTriggerScaleUp") == [f"pod didn't trigger scale-up: {text}"]
        answer = explain_pod(world.state, ("default", "p"), world.now)
        assert answer.way_out is not None
        assert "give group a a price per hour" in str(answer.way_out)


def test_a_service_is_not_asked_about_what_one_expander_settled():
    """With price,grpc the only group with a price is bought; with grpc,price the service has a say about one group."""
    groups = [group("a"), priced("b", 0.2)]
    world = World(groups=groups, pods=[pod("p")], settings={"expander": "price,grpc", **SERVICE})
    assert grown(world) == {"b"}
    world = World(groups=[group("a")], pods=[pod("p")], settings={"expander": "grpc,price", **SERVICE})
    asked, bought = world.tick()
    assert (asked, bought.group) == (AskExpander(("a",)), "a")


@pytest.mark.parametrize(
    ("expander", "text", "asked", "said"),
    [
        ("priority,grpc", "10: [spot-a]", False, ["group spot-a is chosen by priority: 1 node for 1 pod"]),
        (
            "grpc",
            "",
            True,
            [
                "the expander grpc was asked about 3 options and prefers od",
                "group od is chosen by grpc: 1 node for 1 pod",
            ],
        ),
        (
            "priority,grpc",
            None,
            True,
            [
                "the expander grpc was asked about 3 options and prefers od",
                (
                    "group od: the expander priority left all groups: Wrong configmap for priority expander, "
                    "doesn't contain priorities key. Ignoring update."
                ),
                "group od is chosen by grpc: 1 node for 1 pod",
            ],
        ),
        (
            "priority,price,grpc",
            "10: [spot]",
            False,
            ["no group is chosen: price can rate none of 3 options, as none of their groups has a price"],
        ),
    ],
)
def test_a_chain_with_a_service_says_who_settled_it(expander, text, asked, said):
    """Whether before the service or by its answer: the reasons name the expander, and what is wrong with the map."""
    world = world_of(text, expander=expander, made_by=PrefersFirst, **SERVICE)
    assert any(isinstance(one, AskExpander) for one in world.tick()) == asked
    codes = {"ExpanderAnswered", "PrioritiesIgnored", "Chosen", "NoneRated", "NoneLeft"}
    assert sorted(VOCABULARY.text(one) for one in world.reasons if one.code in codes) == sorted(said)
    if text == "10: [spot-a]":
        assert set(warnings(world)) == {"PriorityConfigMapNotMatchedGroup"}


GPU = "example.com/gpu"


def gpu_machine(name, kind="t4"):
    labels = {GPU: kind}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
    return node(name, labels=labels, status={"capacity": amounts, "allocatable": amounts})


def gpu_pods(count):
    request = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    spec = {"containers": [{"name": "main", "image": "x", "resources": request}]}
    return pods("p", count, spec=spec)


@pytest.mark.parametrize(
    ("limits", "delta"), [((), 2), (("t4:0:3",), 1), (("t4:0:1",), 0), (("other:0:0",), 2)]
)
def test_gpus_of_a_type_stay_within_their_total(limits, delta):
    """No more nodes are bought than --gpu-total leaves GPUs of their type; other types are not limited by it."""
    made = NodeTemplate(node=gpu_machine("template"), source="catalogue")
    world = World(
        groups=[group("g", made=made)],
        pods=gpu_pods(4),
        settings={"gpu_total": limits, "gpu_label": GPU},
    )
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == delta


@pytest.mark.parametrize(("least", "stays"), [(2, []), (3, ["n0"])])
def test_gpus_that_a_driver_has_not_reported_keep_no_other_node(least, stays):
    """A node that just starts counts for the GPUs of its group's template in the minimum of --gpu-total."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    starting = node("n1", labels={GPU: "t4"}, status={"capacity": amounts, "allocatable": amounts})
    made = NodeTemplate(node=gpu_machine("template"), source="catalogue")
    world = World(
        nodes=[gpu_machine("n0"), starting],
        groups=[group("g", made=made, nodes=("n0", "n1"))],
        settings={
            "gpu_total": (f"t4:{least}:9",),
            "gpu_label": GPU,
            "scale_down_unneeded_time": ZERO,
            "scale_down_delay_after_add": ZERO,
        },
    )
    world.tick()
    found = world.state.memory.scale_down.status.unremovable
    assert [one.node for one in found if one.reason == "MinimalResourceLimitExceeded"] == stays


@pytest.mark.parametrize("text", ["t4", "t4:3:1", "t4:a:b", ":0:1"])
def test_a_total_that_cannot_be_read_is_refused(text):
    """--gpu-total without type or with limits that make no sense is an error that names the flag."""
    with pytest.raises(ValueError, match=f"--gpu-total={text}: give <gpu type>:<min>:<max>"):
        World(settings={"gpu_total": (text,)})


@pytest.mark.parametrize(("limit", "delta"), [(5000, 3), (3, 1)])
def test_missing_pods_buy_nodes_with_the_flag(limit, delta):
    """With proactive scale-up a ReplicaSet's missing pods count beside one that waits, up to the limit."""
    world = World(
        groups=[group("g")],
        pods=[pod("p", cpu="1", of="web")],
        replica_sets=(replica_set("web", 10),),
        settings={"enable_proactive_scaleup": True, "pod_injection_limit": limit},
    )
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == delta


@pytest.mark.parametrize(("policy", "delta"), [("Parallel", 3), ("OrderedReady", 1), ("", 1)])
def test_missing_pods_of_a_stateful_set_count_if_it_makes_them_side_by_side(policy, delta):
    """One that waits until a pod is ready makes the next ones later."""
    body = {"metadata": {"name": "db", "namespace": "default", "uid": "uid-db"}}
    body["spec"] = {"replicas": 10, "podManagementPolicy": policy}
    world = World(
        groups=[group("g")],
        pods=[pod("p", cpu="1", of="db", kind="StatefulSet")],
        stateful_sets=(slim_stateful_set(msgspec.convert(body, StatefulSet)),),
        settings={"enable_proactive_scaleup": True},
    )
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == delta


def test_pods_that_a_bypassed_scheduler_has_not_looked_at_come_last():
    """Of two pods for which there is one node the one gets it that a scheduler found no place for."""
    unseen = {"spec": {"schedulerName": "own"}, "status": {"conditions": []}}
    world = World(
        groups=[group("g", maximum=1)],
        pods=[pod("a", cpu="3", of="web", **unseen), pod("b", cpu="3", of="web")],
        settings={"bypassed_scheduler_names": ("own",)},
    )
    world.tick()
    assert [event.name for event in world.events if event.reason == "TriggeredScaleUp"] == ["b"]


@pytest.mark.parametrize(
    ("others", "delta"),
    [({"status": {"conditions": []}}, 2), ({"spec": {"schedulingGates": [{"name": "g"}]}}, 1)],
)
def test_copies_stand_in_for_pods_that_the_scheduler_has_not_seen(others, delta):
    """Of six pods one waits: five just made are bought for as well, five gated ones are not."""
    world = World(
        groups=[group("g")],
        pods=[pod("p", cpu="1", of="web"), *pods("q", 5, cpu="1", of="web", **others)],
        replica_sets=(replica_set("web", 6),),
        settings={"enable_proactive_scaleup": True},
    )
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == delta


@pytest.mark.parametrize(
    ("spec", "succeeded", "delta"),
    [
        ({"parallelism": 8, "completions": 20}, 0, 2),
        ({"parallelism": 8, "completions": 20}, 16, 1),
        ({"parallelism": 8}, 0, 2),
        ({"parallelism": 8}, 1, 1),
        ({}, 0, 1),
    ],
)
def test_pods_of_a_job_to_come_are_those_that_it_will_make(spec, succeeded, delta):
    """Without completions it makes no more once one of its pods has succeeded."""
    body = {"metadata": {"name": "j", "namespace": "default", "uid": "uid-j"}, "spec": spec}
    job = msgspec.convert({**body, "status": {"succeeded": succeeded}}, Job)
    world = World(
        groups=[group("g")],
        pods=[pod("p", cpu="1", of="j", kind="Job")],
        jobs=(job,),
        settings={"enable_proactive_scaleup": True},
    )
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == delta


@pytest.mark.parametrize(
    "there",
    [
        pods("q", 3, cpu="1", node="n"),
        [pod("q", cpu="1", spec={"schedulingGates": [{"name": "g"}]})],
    ],
    ids=["bound", "gated"],
)
def test_missing_pods_buy_nodes_though_none_waits(there):
    """Of the missing pods one fits beside the three of the node, the rest need new ones; all do so beside a gated one."""
    world = World(
        groups=[group("g", nodes=("n",))],
        nodes=[node("n")],
        pods=there,
        replica_sets=(replica_set("web", 9),),
        settings={"enable_proactive_scaleup": True},
    )
    assert world.increases() == {"g": 2 if len(there) == 3 else 1}
    assert world.messages("TriggeredScaleUp") == []


def test_missing_pods_are_like_the_newest():
    """The old pod waits and is small; the new one is bound and big, as the next ones will be."""
    later = format_rfc3339(after(START, minutes(-5)))
    world = World(
        groups=[group("g", nodes=("n",))],
        nodes=[node("n")],
        pods=[pod("p", cpu="500m"), pod("q", cpu="3500m", node="n", created=later)],
        replica_sets=(replica_set("web", 4),),
        settings={"enable_proactive_scaleup": True},
    )
    assert world.increases() == {"g": 2}


def test_pods_to_come_that_may_not_buy_buy_nothing():
    """Neither those below --expendable-pods-priority-cutoff nor those that consume a request do, like those that are there."""
    request = {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}
    world = World(
        groups=[group("g")],
        pods=[
            pod("p", of="web", spec={"priority": -100}),
            pod("q", of="api", metadata={"annotations": request}),
        ],
        replica_sets=(replica_set("web", 10), replica_set("api", 10)),
        settings={"enable_proactive_scaleup": True, "enable_provisioning_requests": True},
    )
    assert world.increases() == {}
