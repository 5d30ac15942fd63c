"""Evictions that wait for nodes: an option beyond upstream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.vertical.making import NOW, pod, state, vpa, workloads
from tests.vertical.pods_world import play

from kubetide.plan.board import Replacement
from kubetide.units.time import after, minutes, seconds
from kubetide.vertical.updater.core import encode_result
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.reasons import VOCABULARY
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.state import State

LARGER = {"main": {"cpu": "500m", "memory": "500Mi"}}


def larger(name):
    return Replacement(("default", name), f"uid-{name}", LARGER)


def waiting(found, waits):
    """The state of the next loop, by what the board says."""
    found.replacement_waits = waits
    return found


def names(commands):
    return [command.pod[1] for command in commands]


def replaced(result):
    return [one.pod[1] for one in result.replacements]


def test_a_larger_pod_is_announced_and_goes_once_there_is_capacity():
    """As many as the budget of the group allows are announced; the others wait for their turn."""
    found = waiting(state([pod(f"web-{n}") for n in range(4)], [vpa()]), {})
    commands, result = decide(found, NOW)
    assert commands == []
    assert result.replacements == (larger("web-0"), larger("web-1"))
    said = {one.subject: VOCABULARY.text(one) for one in result.reasons if one.code == "CapacityAwaited"}
    assert sorted(said) == ["default/web-0", "default/web-1"]
    assert "the node loop has not looked for it yet" in said["default/web-0"]
    assert b'"replacements"' in encode_result(result)

    waiting(found, {"uid-web-0": "group g is asked for nodes", "uid-web-1": ""})
    commands, result = decide(found, after(NOW, seconds(10)))
    assert names(commands) == ["web-1"]
    # It stays announced until it is gone: the eviction may fail. The budget that is left is for the next one.
    assert replaced(result) == ["web-1", "web-2"]


@pytest.mark.parametrize(
    ("pods", "waits"),
    [
        ([pod(f"web-{n}", cpu="2", memory="4Gi") for n in range(2)], {}),
        ([pod(f"web-{n}", phase="Pending") for n in range(2)], {}),
        ([pod(f"web-{n}") for n in range(2)], None),
    ],
    ids=["smaller", "Pending", "nobody looks for capacity"],
)
def test_pods_that_need_no_capacity_do_not_wait(pods, waits):
    """They are evicted as upstream does it, and nothing is announced."""
    commands, result = decide(waiting(state(pods, [vpa()]), waits), NOW)
    assert commands
    assert result.replacements == ()
    assert b"replacements" not in encode_result(result)


def test_who_has_capacity_goes_before_who_is_more_urgent():
    """Else a pod that has become more urgent would take the budget, and the node would wait in vain."""
    pods = [pod("web-0", cpu="10m"), pod("web-1", cpu="200m")]
    found = waiting(state(pods, [vpa()]), {"uid-web-1": ""})
    commands, result = decide(found, NOW)
    assert names(commands) == ["web-1"]
    assert replaced(result) == ["web-1"]


def test_who_has_no_capacity_lets_the_others_try():
    """One pod for which there never is a node does not keep its whole group from being updated."""
    pods = [pod("web-0", cpu="10m"), pod("web-1"), pod("web-2")]
    found = waiting(state(pods, [vpa()]), {"uid-web-0": "no node group takes it now: NoOptionsAvailable"})
    commands, result = decide(found, NOW)
    assert commands == []
    assert replaced(result) == ["web-1"]
    commands, _ = decide(waiting(found, {"uid-web-1": ""}), NOW)
    assert names(commands) == ["web-1"]


def test_a_resize_that_its_node_cannot_hold_becomes_an_eviction_only_with_capacity():
    """Mode InPlaceOrRecreate falls back to evictions, which wait like all others."""
    infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    pods = [pod(f"web-{n}", conditions=[infeasible]) for n in range(2)]
    found = waiting(state(pods, [vpa("InPlaceOrRecreate")]), {})
    commands, result = decide(found, NOW)
    assert commands == []
    assert replaced(result) == ["web-0"]
    assert names(decide(waiting(found, {"uid-web-0": ""}), NOW)[0]) == ["web-0"]


def test_a_loop_that_the_rate_limit_cuts_withdraws_nothing():
    """What it did not come to stays announced, but for pods that are gone."""
    pods = [pod(f"web-{n}") for n in range(2)] + [pod("api-0", metadata={"labels": {"app": "api"}})]
    limits = {"eviction_rate_limit": 0.001, "eviction_rate_burst": 1}
    found = waiting(state(pods, [vpa()], views=workloads(2), **limits), {"uid-web-0": ""})
    found.memory.replacements = (larger("api-0"), larger("gone"))
    found.memory.evictions.last, found.memory.evictions.tokens = NOW, 0.0
    commands, result = decide(found, NOW)
    assert commands == []
    assert replaced(result) == ["web-0", "api-0"]


@given(
    capacity=st.lists(st.booleans(), min_size=1, max_size=8),
    tolerance=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_announced_and_evicted_pods_are_within_the_budget(capacity, tolerance):
    """Together never more than one loop of upstream's would evict; and who is evicted had capacity."""
    pods = [pod(f"web-{number}") for number in range(len(capacity))]
    options = {"eviction_tolerance": tolerance, "min_replicas": 1, "views": workloads(len(pods))}
    upstream, _ = decide(state(pods, [vpa()], **options), NOW)
    waits = {f"uid-web-{number}": "" for number, has in enumerate(capacity) if has}
    found = waiting(state(pods, [vpa()], **options), waits)
    commands, result = decide(found, NOW)
    assert len(replaced(result)) == len(upstream)
    assert set(names(commands)) <= {f"web-{number}" for number, has in enumerate(capacity) if has}
    assert len(commands) == min(len(upstream), sum(capacity))
    # From a full record the next loop comes to the same.
    again = State.from_full(found.dump())
    assert names(decide(again, NOW)[0]) == names(decide(found, NOW)[0])


def test_without_a_node_loop_it_is_said_and_nothing_waits():
    """Nobody in the process could answer."""

    async def story(world):
        warnings = []
        world.updater._warn = warnings.append
        await world.build()
        async with world.running():
            await world.clock.sleep(minutes(3))
        return warnings, await world.events()

    warnings, events = play(story, provision_before_eviction=True)
    assert len(warnings) == 1
    assert "--provision-before-eviction" in warnings[0]
    assert any(reason == "EvictedByVPA" for reason, _ in events)
    assert Settings().provision_before_eviction is False
