"""What a tick uses again of earlier ones changes nothing that it decides."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodes.frozen import (
    World,
    daemon_set,
    group,
    node,
    pod,
    pods,
    template,
)

from kubetide.nodes.records.export import copy_state
from kubetide.nodes.state import Delta, Gone
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Namespace
from kubetide.ports.cloud import Instance
from kubetide.units.time import seconds

SIZES = st.sampled_from(["500m", "1500m", "3", "5"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["nothing", "pods", "gone", "join", "fail", "daemon", "undaemon", "template", "label"]
        ),
        st.integers(0, 3),
        SIZES,
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 5))
def test_memory_of_quiet_ticks_changes_nothing(steps, seed):
    """With and without using earlier findings again, and after starting anew from the full form, all decides alike."""
    worlds = [_world(seed) for _ in range(3)]
    worlds[1].state.memo = False
    for number, step in enumerate(steps):
        decided = []
        for at, world in enumerate(worlds):
            _move(world, number, *step)
            if at == 2:
                world.state = copy_state(world.state)
            world.tick(at=seconds(40 * number))
            decided.append(
                msgspec.json.encode([world.commands, world.events, world.state.memory], order="deterministic")
            )
        assert decided[0] == decided[1]
        assert decided[0] == decided[2]


CHANGES = {
    "a DaemonSet comes": lambda world: world.state.apply(Delta(daemon_sets=(daemon_set("new", cpu="1"),))),
    "a DaemonSet changes": lambda world: world.state.apply(Delta(daemon_sets=(daemon_set("old", cpu="2"),))),
    "a DaemonSet goes": lambda world: world.state.apply(
        Delta(gone=Gone(daemon_sets=(("kube-system", "old"),)))
    ),
    "the cloud's template changes": lambda world: world.change("g", template=template(cpu="8")),
}


@pytest.mark.parametrize("expander", ["least-waste", "least-cost"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_templates_are_cached_while_their_input_is_unchanged(change, expander):
    """A second scale-up has the same templates as a loop that has just begun."""
    found = []
    for changed, anew in ((True, False), (True, True), (False, False)):
        world = World(
            pods=[pod("first", cpu="3")],
            groups=[group("g", maximum=50, price_per_hour=1.0)],
            daemon_sets=(daemon_set("old", cpu="1"),),
            settings={"expander": expander},
        )
        assert world.increases() == {"g": 1}
        if changed:
            change(world)
        if anew:
            world.state = copy_state(world.state)
        sizes = (pod("large", cpu="3500m"), pod("medium", cpu="2500m"))
        increases = world.increases(at=seconds(10), pods=(*pods("next", 24, cpu="1"), *sizes))
        found.append((increases, world.reasons))
    assert found[0] == found[1]
    assert found[0] != found[2]


def _world(seed):
    groups = [group("a", nodes=["n1"], maximum=4), group("b", made=template(cpu="8"), maximum=2)]
    return World(nodes=[node("n1")], groups=groups, settings={"seed": seed, "expander": "random"})


def _move(world, number, what, count, size):
    if what == "pods":
        world.state.apply(Delta(pods=tuple(pods(f"p{number}", count, cpu=size))))
    elif what == "gone":
        world.state.apply(Delta(gone=Gone(pods=tuple(sorted(world.state.pods))[:count])))
    elif what == "daemon":
        world.state.apply(Delta(daemon_sets=(daemon_set(f"d{count}", cpu=size),)))
    elif what == "undaemon":
        world.state.apply(Delta(gone=Gone(daemon_sets=tuple(sorted(world.state.daemon_sets))[:count])))
    elif what == "template":
        world.change("b", template=template(cpu=str(4 * count + 4)))
    elif what == "label":
        world.state.apply(
            Delta(namespaces=(Namespace(metadata=ObjectMeta(name="default", labels={"round": str(count)})),))
        )
    elif what == "fail":
        world.refused = {"a": "no"} if count else {}
    elif what == "join":
        known = world.groups["a"]
        names = [one.provider_id for one in known.instances or ()]
        if known.target_size > len(names):
            # Later than the others in name order too: a state made anew has its nodes in that order.
            name = f"z{number:02d}"
            world.change("a", instances=(*known.instances, Instance(provider_id=f"cloud:///{name}")))
            world.state.apply(Delta(nodes=(node(name),)))
