"""Which group each node is in, as a provider of the protocol says: what it is asked, how often, and what comes of it."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("google.protobuf", reason="protobuf is an extra")

from kubetide.clouds.externalgrpc.cloud import ExternalGrpcCloud
from kubetide.clouds.externalgrpc.joined_nodes import joined_nodes
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS
from kubetide.clouds.externalgrpc.readings import instance_message
from kubetide.clouds.externalgrpc.service import ProviderService
from kubetide.clouds.externalgrpc.statuses import error_of
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import NODES
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec
from kubetide.ports.cloud import Cloud, Instance, InstanceError, NodeGroup, instance_id
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
REASON = "k8s.io/cluster-autoscaler/fake-node-reason"
SECOND = seconds(1)


def node(name, *, machine=None, labels=None):
    provider_id = f"x://{name}" if machine is None else machine
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(provider_id=provider_id))


class Provider:
    """A provider whose groups list machines, and whose answers for nodes are given by name; it notes what it is asked."""

    def __init__(self, lists, *, answers=None, fails=None, target=None, least=0):
        self.lists = {name: [self._instance(one) for one in machines] for name, machines in lists.items()}
        self.answers, self.fails = dict(answers or {}), dict(fails or {})
        self.asked, self.deleted, self.target, self.least = [], [], target, least

    @staticmethod
    def _instance(machine):
        return machine if isinstance(machine, Instance) else Instance(provider_id=f"x://{machine}")

    def names(self):
        """Return the names that it was asked for since this was called last."""
        asked, self.asked = [one.name for one in self.asked], []
        return sorted(asked)

    async def __call__(self, method, request):
        answer = MESSAGES[METHODS[method][1]]()
        match method:
            case "NodeGroups":
                for name in self.lists:
                    answer.nodeGroups.add(id=name, minSize=self.least, maxSize=9)
            case "NodeGroupTargetSize":
                answer.targetSize = len(self.lists[request.id]) if self.target is None else self.target
            case "NodeGroupNodes":
                answer.instances.extend(map(instance_message, self.lists[request.id]))
            case "NodeGroupForNode":
                self.asked.append(request.node)
                name = request.node.name
                if status := self.fails.get(name, self.fails.get("*")):
                    raise error_of(method, status, "as the test has it")
                answer.nodeGroup.id = self.answers.get(name, self._lister(request.node.providerID))
            case "NodeGroupDeleteNodes":
                self.deleted += request.nodes
        return answer

    def _lister(self, machine):
        return next(
            (
                name
                for name, machines in self.lists.items()
                if machine in {one.provider_id for one in machines}
            ),
            "",
        )


class Nodes:
    """The nodes of a cluster, as a test sets them."""

    problem = ""

    def __init__(self, *nodes):
        self.nodes = list(nodes)

    def by_machine(self):
        return {instance_id(one): one for one in self.nodes}


class World:
    """A provider, nodes, the time, and the cloud over them."""

    def __init__(self, provider, *nodes):
        self.provider, self.nodes, self.now = provider, Nodes(*nodes), START
        self.cloud = ExternalGrpcCloud(provider, address="test", nodes=self.nodes, now=lambda: self.now)

    def refresh(self, *, at=None):
        """Return the groups by id, so many seconds after the start."""
        self.now = self.now if at is None else Instant(START + at * SECOND)
        self.groups = {one.id: one for one in asyncio.run(self.cloud.refresh())}
        return self.groups

    def machines(self, group):
        """Return the names of the group's machines and whether they may be removed."""
        machines = self.groups[group].instances
        return {one.provider_id.removeprefix("x://"): one.managed for one in machines}

    def delete(self, group, *machines):
        asyncio.run(self.cloud.delete_nodes(group, [f"x://{one}" for one in machines]))


def test_a_machine_that_is_listed_and_in_no_group_is_left_alone():
    """It counts in its group, and no order deletes it, nor what is named with it."""
    provider = Provider({"g": ["a", "b"]}, answers={"b": ""})
    world = World(provider, node("a"), node("b"))
    group = world.refresh()["g"]
    assert group.target_size == 2
    assert world.machines("g") == {"a": True, "b": False}
    with pytest.raises(CloudError, match="x://b does not belong to it"):
        world.delete("g", "a", "b")
    assert provider.deleted == []
    world.delete("g", "a")
    assert [one.name for one in provider.deleted] == ["a"]


def test_a_node_that_no_list_names_has_a_machine_of_its_group():
    """A provider may know nodes by name or labels alone; one without a machine's id is known by its name."""
    answers = {"a": "g", "b": "g", "c": "g", "d": "gone", "e": ""}
    provider = Provider({"g": [], "h": ["c"]}, answers=answers, target=3)
    world = World(provider, node("a"), node("b", machine=""), *(node(name) for name in ("c", "d", "e")))
    world.refresh()
    assert world.machines("g") == {"a": True, "node:///b": True, "c": True}
    assert world.machines("h") == {}
    world.delete("g", "a")
    assert [(one.name, one.providerID) for one in provider.deleted] == [("a", "x://a")]


def test_a_machine_that_never_joined_is_asked_for_by_its_stand_in():
    """As upstream: one that goes or has failed is not; where it is in no group nothing removes it."""
    error = InstanceError(error_class="OutOfResource", error_code="STOCKOUT")
    failed = Instance(provider_id="x://failed", state="Creating", error=error)
    provider = Provider(
        {"g": ["late", "kept", failed, Instance(provider_id="x://going", state="Deleting")]},
        answers={"x://kept": ""},
    )
    world = World(provider)
    world.refresh()
    assert [(one.name, one.providerID, dict(one.annotations)) for one in provider.asked] == [
        (name, name, {REASON: "unregistered"}) for name in ("x://kept", "x://late")
    ]
    assert world.machines("g") == {"late": True, "kept": False, "failed": True, "going": True}
    with pytest.raises(CloudError, match="x://kept does not belong to it"):
        world.delete("g", "late", "kept")
    world.delete("g", "late", "failed")
    assert [one.name for one in provider.deleted] == ["x://late", "x://failed"]


def test_an_answer_holds_for_a_minute():
    """New nodes and those that have changed are asked for at once, and nothing else; one that was gone is new."""
    provider = Provider({"g": ["a", "b"]})
    world = World(provider, node("a", labels={"disk": "ssd"}), node("b"))
    world.refresh()
    assert provider.names() == ["a", "b"]
    world.nodes.nodes[0] = node("a", labels={"disk": "ssd"})
    world.refresh(at=59)
    assert provider.names() == []
    world.nodes.nodes = [node("a", labels={"disk": "hdd"}), node("b"), node("c")]
    world.refresh()
    assert provider.names() == ["a", "c"]
    world.refresh(at=60)
    assert provider.names() == ["b"]
    gone = world.nodes.nodes.pop()
    world.refresh(at=61)
    world.nodes.nodes.append(gone)
    world.refresh(at=62)
    assert provider.names() == ["c"]
    provider.answers["b"] = ""
    world.refresh(at=119)
    assert world.machines("g")["b"]
    world.refresh(at=120)
    assert not world.machines("g")["b"]


def test_a_refresh_renews_a_bounded_number_of_answers():
    """The oldest first, so that each has its turn; however many nodes there are, new ones are all asked for."""
    names = [f"n{at:03}" for at in range(600)]
    provider = Provider({"g": names})
    world = World(provider, *map(node, names))
    world.refresh()
    assert len(provider.names()) == 600
    turns = []
    for at in (60, 70, 80, 90):
        world.refresh(at=at)
        turns.append(provider.names())
    assert [len(turn) for turn in turns] == [250, 250, 100, 0]
    assert sorted(name for turn in turns for name in turn) == names
    changed = turns[2][-1]
    world.nodes.nodes[names.index(changed)] = node(changed, labels={"new": "label"})
    world.refresh(at=130)
    renewed = provider.names()
    assert len(renewed) == 250
    assert changed in renewed, "what has changed comes before what is old"


def test_a_question_that_fails_leaves_what_was_answered():
    """A node that was never answered for is left alone, which its group says; the others are as they were."""
    provider = Provider({"g": ["a", "b"]})
    world = World(provider, node("a"))
    world.refresh()
    provider.fails = {"*": "INTERNAL"}
    world.nodes.nodes.append(node("b"))
    group = world.refresh(at=60)["g"]
    assert world.machines("g") == {"a": True, "b": False}
    [warning] = group.warnings
    assert warning.startswith(
        "the provider has not said of all its nodes whether they belong to it (Internal)"
    )
    provider.fails, provider.asked = {}, []
    assert world.refresh(at=70)["g"].warnings is None
    assert provider.names() == ["a", "b"]
    assert world.machines("g") == {"a": True, "b": True}


def test_a_refresh_does_not_wait_for_many_answers_that_do_not_come():
    """Each takes as long as the time-out. The nodes behind them are asked for next, before those that got none."""
    names = [f"n{at:03}" for at in range(100)]
    provider = Provider({"g": names}, fails={"*": "DEADLINE_EXCEEDED"})
    world = World(provider, *map(node, names))
    world.refresh()
    first = provider.names()
    assert len(first) <= 16
    provider.fails = {"*": "INTERNAL"}
    world.refresh(at=10)
    asked = [one.name for one in provider.asked]
    assert sorted(asked) == names, "a refusal is an answer, and takes no time"
    assert sorted(asked[-len(first) :]) == first


def test_a_provider_without_the_method_has_what_it_lists():
    """It is tried once in a refresh, with one node; a deletion goes by the list."""
    provider = Provider({"g": ["a", "b"]}, fails={"*": "UNIMPLEMENTED"})
    world = World(provider, node("a"), node("b"), node("c"))
    for _ in range(2):
        world.refresh()
        assert len(provider.names()) == 1
        assert world.machines("g") == {"a": True, "b": True}
    with pytest.raises(CloudError, match="x://c does not belong to it"):
        world.delete("g", "c")
    world.delete("g", "a")
    assert [one.name for one in provider.deleted] == ["a"]


def test_a_deletion_asks_once_more():
    """A node that was protected since it was asked for stays, and one for which there is no answer."""
    provider = Provider({"g": ["a", "b"]})
    world = World(provider, node("a"), node("b"))
    world.refresh()
    provider.answers["a"] = ""
    with pytest.raises(CloudError, match="x://a does not belong to it"):
        world.delete("g", "a")
    world.refresh()
    assert world.machines("g") == {"a": False, "b": True}, "what it has said then holds"
    provider.fails["b"] = "UNAVAILABLE"
    with pytest.raises(CloudError, match="NodeGroupForNode: Unavailable"):
        world.delete("g", "b")
    assert provider.deleted == []


def test_a_provider_that_no_longer_has_the_method_is_held_to_its_answers():
    """As one that was replaced by an older one: what it protected stays."""
    provider = Provider({"g": ["a", "b"]}, answers={"b": ""})
    world = World(provider, node("a"), node("b"))
    world.refresh()
    provider.fails = {"*": "UNIMPLEMENTED"}
    assert world.refresh(at=60)["g"].warnings is None
    assert world.machines("g") == {"a": True, "b": False}
    with pytest.raises(CloudError, match="x://b does not belong to it"):
        world.delete("g", "b")
    world.delete("g", "a")
    assert [one.name for one in provider.deleted] == ["a"]


def test_nodes_that_cannot_be_watched_stop_deletions():
    """A node that has joined since would seem not to have: its group is stale, so that nothing of it is removed."""
    provider = Provider({"g": ["a"]})
    world = World(provider, node("a"))
    world.nodes.problem = "the nodes cannot be watched: forbidden"
    assert world.refresh()["g"].stale == world.nodes.problem
    with pytest.raises(
        CloudError, match="cannot be watched: forbidden; nothing is deleted until they can be"
    ):
        world.delete("g", "a")
    world.nodes.problem = ""
    assert not world.refresh()["g"].stale


def test_a_deletion_describes_its_nodes():
    """By all that the protocol has, as upstream's; a machine that never joined is described as its stand-in there."""
    error = InstanceError(error_class="Other", error_code="STOCKOUT")
    failed = Instance(provider_id="x://2", state="Creating", error=error)
    provider = Provider({"g": ["0", "1", failed]})

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        body = builders.node("a", labels={"disk": "ssd"}, extra={"spec": {"providerID": "x://0"}})
        await cluster.create(NODES, body)
        async with joined_nodes(cluster, clock) as nodes:
            cloud = ExternalGrpcCloud(provider, address="test", nodes=nodes, now=clock.now)
            with pytest.raises(CloudError, match="the nodes have not been listed yet"):
                await cloud.refresh()
            await clock.sleep(seconds(1))
            await cloud.delete_nodes("g", ["x://0", "x://1", "x://2"])

    run_virtual(main, start=START)
    assert [
        (one.name, one.providerID, dict(one.labels), dict(one.annotations)) for one in provider.deleted
    ] == [
        ("a", "x://0", {"disk": "ssd", "kubernetes.io/hostname": "a"}, {}),
        ("x://1", "x://1", {}, {REASON: "unregistered"}),
        ("x://2", "x://2", {}, {REASON: "create-error"}),
    ]


def test_a_machine_that_could_not_be_created_goes_below_the_minimum():
    """As upstream, it is the provider that says whether it does; a machine that runs stays within the minimum."""
    error = InstanceError(error_class="OutOfResource", error_code="STOCKOUT")
    failed = Instance(provider_id="x://b", state="Creating", error=error)
    provider = Provider({"g": ["a", failed]}, least=2)
    world = World(provider, node("a"))
    world.refresh()
    with pytest.raises(CloudError, match="min size reached: minimum 2, 1 would be left"):
        world.delete("g", "a")
    with pytest.raises(CloudError, match="min size reached: minimum 2, 0 would be left"):
        world.delete("g", "a", "b")
    world.delete("g", "b")
    assert [one.name for one in provider.deleted] == ["x://b"]


class Protecting(Cloud):
    """A cloud of ours with a machine that is to be left alone, and one that is known by its node's name."""

    name, gpu_label = "protecting", ""

    async def refresh(self):
        machines = (
            Instance(provider_id="x://a"),
            Instance(provider_id="x://b", managed=False),
            Instance(provider_id="node:///c"),
        )
        return [NodeGroup(id="g", max_size=9, target_size=3, instances=machines)]


def test_our_server_answers_likewise():
    """A machine that is to be left alone is listed, and its node is in no group."""
    methods = ProviderService(Protecting()).methods()

    async def ask(method, **fields):
        return await methods[method](MESSAGES[METHODS[method][0]](**fields))

    async def main():
        nodes = [("a", "x://a"), ("b", "x://b"), ("c", ""), ("d", "x://d")]
        answers = [
            await ask("NodeGroupForNode", node={"name": name, "providerID": machine})
            for name, machine in nodes
        ]
        listed = await ask("NodeGroupNodes", id="g")
        return [one.nodeGroup.id for one in answers], [one.id for one in listed.instances]

    assert asyncio.run(main()) == (["g", "", "g", ""], ["x://a", "x://b", "node:///c"])
