"""New nodes whose group has the taint for it: pods are nominated to those that were bought for them, and the taint goes."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from msgspec.structs import replace
from tests.nodes import live
from tests.nodes.frozen import START, World, group, node, pod, template
from tests.nodes.live import SMALL

from kubetide.embedded.cloud.groups import GROUP_LABEL
from kubetide.embedded.draws import fixed
from kubetide.nodes.decision import NominatePod, Outcome, RemoveTaint
from kubetide.nodes.facts.nodes import NOMINATION_TAINT, has_taint
from kubetide.objects.kinds import NODES
from kubetide.objects.node import Taint, node_condition
from kubetide.ports.cloud import Instance
from kubetide.units.time import format_rfc3339, minutes, seconds

HELD = {"key": NOMINATION_TAINT, "effect": "NoSchedule"}
HELD_TAINTS = (Taint(key=NOMINATION_TAINT, effect="NoSchedule"),)
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "startup-taint.cluster-autoscaler.kubernetes.io/cni", "effect": "NoSchedule"}


def sized(name, cpu, price):
    made = template(cpu=str(cpu), memory=f"{4 * cpu}Gi", spec={"taints": [HELD]})
    return group(name, made=made, price_per_hour=price)


def joined(name, cpu, *taints, ready=True):
    now = format_rfc3339(START)
    return node(
        name, cpu=str(cpu), memory=f"{4 * cpu}Gi", ready=ready, created=now, spec={"taints": list(taints)}
    )


LITTLE = [pod(f"little-{at}", cpu="1500m", of="little") for at in range(3)]
BIG = pod("big", cpu="6", of="big")


def on_node(one, name):
    """Return a pod that is nominated to a node."""
    return replace(one, status=replace(one.status, nominated_node_name=name))


class Town(World):
    """Three little pods and a big one, for which a large node and two small ones are bought."""

    def __init__(self, *, pods=(*LITTLE, BIG), groups=None, bought=None, expander="least-cost"):
        super().__init__(
            groups=groups or (sized("large", 8, 0.4), sized("small", 2, 0.1)),
            pods=pods,
            settings={"expander": expander},
        )
        assert self.increases() == (bought or {"large": 1, "small": 2})

    def join(self, *nodes, at, **changes):
        """Let machines come, and return what the loop does."""
        for one in nodes:
            name = one.metadata.name
            known = self.groups[name.partition("-")[0]]
            machine = Instance(provider_id=f"cloud:///{name}")
            if machine not in (known.instances or ()):
                self.groups[known.id] = replace(known, instances=(*(known.instances or ()), machine))
        return self.tick(at=seconds(at), nodes=tuple(nodes), **changes)


def nominated(actions):
    """Return pod to node, and the nodes that are opened; nominations come first."""
    pods = {one.name: one.node for one in actions if isinstance(one, NominatePod)}
    opened = [one.node for one in actions if isinstance(one, RemoveTaint) and one.key == NOMINATION_TAINT]
    assert [type(one) for one in actions] == [NominatePod] * len(pods) + [RemoveTaint] * len(opened)
    return pods, opened


def test_the_pods_that_a_node_was_bought_for_are_nominated_once_it_is_well():
    """Not before its other taints are gone; a node that comes later gets its own."""
    town = Town()
    assert nominated(town.join(joined("large-1", 8, HELD, NOT_READY, ready=False), at=60)) == ({}, [])
    assert nominated(town.join(joined("large-1", 8, HELD, OTHER), at=70)) == ({}, [])
    pods, opened = nominated(town.join(joined("large-1", 8, HELD), at=80))
    assert opened == ["large-1"]
    assert pods.pop("big") == "large-1"
    assert list(pods.values()) == ["large-1"]
    assert [
        (one.code, one.subject, one.fields["pods"]) for one in town.reasons if one.code == "PodsNominated"
    ] == [("PodsNominated", "large-1", 2)]
    on_large = [on_node(one, "large-1") for one in (BIG, *LITTLE) if one.metadata.name in {"big", *pods}]
    both = joined("small-1", 2, HELD), joined("small-2", 2, HELD)
    others, opened = nominated(town.join(joined("large-1", 8), *both, at=90, pods=tuple(on_large)))
    assert opened == ["small-1", "small-2"]
    assert sorted(others.values()) == ["small-1", "small-2"]
    assert {*others, *pods, "big"} == {one.metadata.name for one in (*LITTLE, BIG)}


def test_a_taint_that_is_still_shown_is_taken_off_again_without_other_nominations():
    """A watch may lag, and a patch may fail; the plan of the next node is not used up by it."""
    town = Town()
    first, opened = nominated(town.join(joined("small-1", 2, HELD), at=60))
    assert (list(first.values()), opened) == (["small-1"], ["small-1"])
    assert nominated(town.tick(at=seconds(70))) == ({}, ["small-1"])
    again, opened = nominated(town.join(joined("small-2", 2, HELD), at=80))
    assert opened == ["small-1", "small-2"]
    assert list(again.values()) == ["small-2"]
    assert first.keys() != again.keys()


def test_a_node_without_a_plan_is_opened():
    """After a restart nobody knows whom it was bought for; pods that found another place are not nominated."""
    town = Town()
    town.state.memory.planned.clear()
    assert nominated(town.join(joined("large-1", 8, HELD), at=60)) == ({}, ["large-1"])
    town = Town()
    gone = tuple((one.metadata.namespace, one.metadata.name) for one in (*LITTLE, BIG))
    assert nominated(town.join(joined("large-1", 8, HELD), at=60, deleted_pods=gone)) == ({}, ["large-1"])


def test_a_cluster_of_which_each_node_is_kept_closed_is_opened():
    """--scale-up-from-zero=false does nothing while no node is ready, and these are not ready to upstream's eyes."""
    town = Town()
    town.state.settings = replace(town.state.settings, scale_up_from_zero=False)
    _, opened = nominated(town.join(joined("large-1", 8, HELD), at=60))
    assert opened == ["large-1"]


@pytest.mark.parametrize(
    ("taints", "bought"), [(HELD_TAINTS, {"large": 1, "small": 2}), ((), {"large": 2, "small": 2})]
)
def test_pods_are_bound_as_planned_in_a_living_cluster(taints, bought):
    """The large node comes first. Without the taint the little pods take it, and another is bought for the big one."""
    small = dataclasses.replace(SMALL, taints=taints, boot=fixed(seconds(90)), price_per_hour=0.1)
    large = dataclasses.replace(
        small, name="large", instance_type="m5.2xlarge", boot=fixed(seconds(60)), price_per_hour=0.4
    )

    async def story(world):
        await world.deploy("little", replicas=3, cpu="1500m")
        await world.deploy("big", replicas=1, cpu="6")
        await world.after(minutes(5))
        assert world.pending == []
        nodes = (await world.cluster.list(NODES)).items
        assert Counter(node.metadata.labels[GROUP_LABEL] for node in nodes) == bought
        assert not any(has_taint(node, NOMINATION_TAINT) for node in nodes)

    assert live.replayed(live.play(story, (small, large), expander="least-cost"))


def test_a_node_is_opened_as_soon_as_nothing_else_keeps_pods_away():
    """The tick is not waited for when another program takes off its taint some time after the node has become ready."""
    other = Taint(key=OTHER["key"], effect="NoSchedule")

    async def story(world):
        await world.deploy("little", replicas=1, cpu="1500m")
        await world.after(seconds(123))
        (one,) = world.informers["nodes"].objects.values()
        assert (node_condition(one, "Ready").status, len(one.spec.taints)) == ("True", 2)
        await world.cluster.patch(NODES, one.metadata.name, {"spec": {"taints": [HELD]}})
        await world.after(seconds(1))
        assert world.pending == []

    live.play(story, (dataclasses.replace(SMALL, taints=(*HELD_TAINTS, other)),))


@pytest.mark.parametrize("expander", ["least-waste", "least-cost"])
def test_each_pod_is_nominated_once_whichever_expander_has_chosen(expander):
    """Each node gets the pods that are counted on one upcoming node, and no more than it holds; nothing is bought twice."""
    waiting = [
        pod("big", cpu="6", of="big"),
        *(pod(f"little-{at}", cpu="1500m", of="little") for at in range(4)),
    ]
    town = Town(pods=waiting, groups=(sized("large", 8, 0.4),), bought={"large": 2}, expander=expander)
    assert nominated(town.join(joined("large-1", 8, HELD, OTHER), at=30)) == ({}, [])
    first, opened = nominated(town.join(joined("large-1", 8, HELD), at=60))
    assert (set(first.values()), opened) == ({"large-1"}, ["large-1"])
    assert nominated(town.tick(at=seconds(61))) == ({}, ["large-1"])
    left = [one for one in waiting if one.metadata.name not in first]
    seen = [on_node(one, "large-1") for one in waiting if one.metadata.name in first]
    both = joined("large-1", 8), joined("large-2", 8, HELD)
    others, opened = nominated(town.join(*both, at=70, pods=tuple(seen)))
    assert (set(others.values()), opened) == ({"large-2"}, ["large-2"])
    assert sorted([*first, *others]) == sorted(one.metadata.name for one in waiting)
    assert sorted(others) == sorted(one.metadata.name for one in left)
    for pods in (first, others):
        assert sum(6000 if name == "big" else 1500 for name in pods) <= 8000


def test_a_nomination_that_fails_keeps_no_node_closed():
    """Without the right to write statuses of pods all is as without nominations."""

    class Forbidden(Town):
        def _do(self, action):
            refused = isinstance(action, NominatePod)
            return Outcome("failed", "forbidden") if refused else super()._do(action)

    pods, opened = nominated(Forbidden().join(joined("large-1", 8, HELD), at=60))
    assert pods
    assert opened == ["large-1"]
