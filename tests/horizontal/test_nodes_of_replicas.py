"""Replicas without a node: what the node loop says of them, in the HPA's status and explanation."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import play

from kubetide.horizontal.core import HorizontalCore, encode_delta, encode_result
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.facts.views import CapacityView
from kubetide.horizontal.state import Delta, State
from kubetide.plan.board import Capacity, Workload
from kubetide.units.time import Instant, after, minutes, seconds

WEB = Workload("default", "Deployment", "web")
KEY = ("default", "web")
FULL = "1 max node group size reached"
REFUSED = CapacityView(*KEY, missing=4, refused=3, detail=FULL)
PLAIN = ("False", "DesiredWithinRange")
PAUSED = {"horizontal.kubetide.io/pause": "all"}


def limited(status):
    [found] = [one for one in status.conditions if one.type == "ScalingLimited"]
    return found


def looked_at(state, number, *, columns_from=200, milli=100, **delta):
    """Play a tick in which nothing changes but what the node loop says; return the only settlement."""
    now = Instant(worlds.NOW + number * seconds(15))
    usage = {("default", f"web-{at}"): milli for at in range(3)}
    state.apply(Delta(answers=[worlds.answer(usage)], **delta))
    [settlement] = absorb(state, decide(state, now, columns_from=columns_from), []).settlements
    return settlement


def quiet_state(**hpa):
    return worlds.state_of(
        hpas=[msgspec.structs.replace(worlds.hpa(), **hpa)],
        pods=[worlds.pod(f"web-{at}") for at in range(3)],
        scales=[worlds.scale(replicas=3)],
        usage={("default", f"web-{at}"): 100 for at in range(3)},
    )


def test_an_hpa_whose_replicas_no_group_takes_says_so_until_they_have_nodes():
    """The answer on the board becomes a condition within a sync period, is written once, and goes with the answer."""

    async def story(world):
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(40))
            assert (
                limited((await world.hpa()).status).status,
                limited((await world.hpa()).status).reason,
            ) == PLAIN
            world.board.answer(Capacity(WEB, 4, None, FULL, refused=3))
            await world.clock.sleep(seconds(16))
            written = await world.hpa()
            found = limited(written.status)
            assert (found.status, found.reason) == ("True", "NoNodesForReplicas")
            assert (
                found.message
                == f"no node for 4 replicas (there or to come), and no node group takes 3 of them: {FULL}"
            )
            await world.clock.sleep(minutes(2))
            assert await world.hpa() == written, "nothing changes, so nothing is written"
            world.board.clear_answer(WEB)
            await world.clock.sleep(seconds(16))
            assert (
                limited((await world.hpa()).status).status,
                limited((await world.hpa()).status).reason,
            ) == PLAIN
        core = HorizontalCore()
        for line in world.recorder.lines:
            record = msgspec.json.decode(line)
            core.apply(msgspec.json.encode(record["state"]), full=record.get("full", False))
            core.decide(Instant(record["now"]))
            again = core.absorb(msgspec.json.encode(record["outcomes"]), Instant(record["now"]))
            assert msgspec.json.decode(again) == record["result"]

    play(story)


@pytest.mark.parametrize("columns_from", [0, 200], ids=["in columns", "alone"])
def test_a_settled_hpa_hears_of_its_nodes(columns_from):
    """Where nothing else changes, what came out before does not come out again."""
    state = quiet_state()
    for number in range(5):
        before = looked_at(state, number, columns_from=columns_from)
    assert before.is_quiet
    found = looked_at(state, 5, columns_from=columns_from, nodes=[REFUSED])
    assert limited(found.status).reason == "NoNodesForReplicas"
    held = [looked_at(state, number, columns_from=columns_from) for number in range(6, 9)]
    assert all(one.is_quiet and one.status == found.status for one in held)
    gone = looked_at(state, 9, columns_from=columns_from, nodes=[CapacityView(*KEY)])
    assert (limited(gone.status).status, limited(gone.status).reason) == PLAIN
    assert not state.nodes


def test_a_restart_from_a_full_record_knows_of_the_nodes():
    """A state of the dump settles as the one that was dumped."""
    state = quiet_state()
    looked_at(state, 0, nodes=[REFUSED])
    core = HorizontalCore()
    core.apply(encode_delta(state.dump()), full=True)
    assert core.state.nodes == {KEY: REFUSED}
    settled = [looked_at(one, 1) for one in (state, core.state)]
    assert settled[0].status == settled[1].status


def test_nodes_that_are_awaited_are_no_limit():
    """They come; the explanation says when."""
    state = quiet_state()
    at = after(worlds.NOW, minutes(3))
    coming = CapacityView(*KEY, missing=2, expected=at, detail="nodes of group small are on their way")
    found = looked_at(state, 0, nodes=[coming])
    assert (limited(found.status).status, limited(found.status).reason) == PLAIN
    answer = explain(state, KEY, worlds.NOW).answer
    assert (
        "No node yet for 2 replicas (there or to come): nodes of group small are on their way; expected by 2026-03-02T08:03:00Z."
        in answer
    )
    looked_at(state, 1, nodes=[msgspec.structs.replace(coming, expected=None)])
    assert "; when they come is not known yet." in explain(state, KEY, worlds.NOW).answer


def test_the_explanation_names_what_no_group_takes_and_where_to_ask_on():
    """Nobody reads that nothing holds it back while its replicas cannot run."""
    state = quiet_state()
    looked_at(state, 0, nodes=[REFUSED])
    found = explain(state, KEY, worlds.NOW)
    assert (
        f"No node for 4 replicas (there or to come), and no node group takes 3 of them: {FULL}."
        in found.answer
    )
    assert "nothing holds it back" not in found.answer
    assert "kubetide explain pod" in found.way_out


def test_what_an_annotation_limits_stays_the_condition():
    """Somebody asked for the pause; it is what keeps the number."""
    state = quiet_state(annotations=PAUSED)
    found = looked_at(state, 0, nodes=[REFUSED], milli=300)
    assert limited(found.status).reason == "Paused"


def test_an_hpa_that_is_deleted_is_forgotten():
    """Nothing of it comes back with another of its name."""
    state: State = quiet_state()
    looked_at(state, 0, nodes=[REFUSED])
    state.apply(Delta(gone_hpas=[KEY]))
    assert not state.nodes
    assert encode_result(absorb(state, decide(state, worlds.NOW), []))
