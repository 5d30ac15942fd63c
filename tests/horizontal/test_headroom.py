"""Learned headroom in the loop: it takes the target's place only where it is used and the load is known."""

from __future__ import annotations

from math import pi, sin

import msgspec
import pytest
from tests.forecast.loads import Player
from tests.horizontal import worlds

from kubetide.horizontal.core import HorizontalCore, encode_delta
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.entry import ENTRY
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.memory import MemoryEntry, Recommendation
from kubetide.horizontal.options.annotations import PREFIX
from kubetide.horizontal.reasons import reasons_of
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.settings import Settings
from kubetide.loop import parse_flags
from kubetide.units.time import Instant, hours, minutes

KEY, NOW = ("default", "web"), worlds.NOW
OLD = [Recommendation(Instant(NOW - minutes(1)), 1)]
LEARNING = Settings(forecaster="headroom")


@pytest.fixture(scope="module")
def memory():
    """The memory of a slow wave around 42 pods' worth of load, which is at 42 now."""
    length = hours(26)
    player = Player(start=Instant(NOW - length), tick=minutes(1), headroom=True)
    player.run(lambda minute: 42 + 8 * sin(2 * pi * minute / 780), length)
    return player.forecasts.dump("web")


def state_of(
    memory, *, pods=60, milli=140, limit=400, settings=LEARNING, forecast="calendar", metrics=None, **changes
):
    """Pods that each use that much of 200m, with a target of 70 %."""
    view = worlds.hpa(target=70, **({"metrics": metrics} if metrics else {}))
    names = [f"p{index:02}" for index in range(pods)]
    return worlds.state_of(
        hpas=[msgspec.structs.replace(view, annotations={PREFIX + "forecast": forecast})],
        pods=[worlds.pod(name, cpu_limit=limit, **changes) for name in names],
        scales=[worlds.scale(replicas=pods)],
        usage={("default", name): milli for name in names},
        memory=[MemoryEntry(*KEY, OLD, forecast=memory)],
        settings=settings,
    )


def test_a_smooth_load_gets_fuller_pods(memory):
    """60 pods at 70 % are right by the target; what the load's own past leaves to chance needs fewer, at 80 % at most."""
    state = state_of(memory)
    verdict = evaluate(state, KEY, NOW)
    assert evaluate(state_of(memory, settings=Settings()), KEY, NOW).raw == 60
    assert verdict.raw == verdict.headroom == 53, "42 pods' worth of load at 80 %"
    result = absorb(state, decide(state, NOW), [])
    assert "HeadroomLearned" in {one.code for one in reasons_of(result.settlements[0], state.specs[KEY])}
    assert "wants 53 (by learned headroom)" in explain(state, KEY, NOW).answer


@pytest.mark.parametrize(("pods", "raw"), [(58, 58), (60, 53), (52, 52), (50, 53)])
def test_it_is_as_calm_as_the_target(memory, pods, raw):
    """53 pods are right: within the tolerance of 10 % nothing is scaled down, within half of it nothing up."""
    assert evaluate(state_of(memory, pods=pods, milli=round(42 * 200 / pods)), KEY, NOW).raw == raw


@pytest.mark.parametrize(
    "changes",
    [
        {"forecast": "strict"},
        {"limit": 140},
        {"pods": 20},
        {"metrics": [worlds.utilization(70), worlds.utilization(70, "memory")]},
    ],
)
def test_else_the_target_holds(memory, changes):
    """With ``strict``, at the CPU limit, below thirty pods and with a second metric the HPA's own formula decides."""
    assert evaluate(state_of(memory, **changes), KEY, NOW).headroom is None


def test_a_rollout_is_left_to_the_target(memory):
    """While pods of two ReplicaSets are there, the load of each is not that of all."""
    state = state_of(memory)
    for at, row in enumerate(state.table.rows.values()):
        pod = state.table.view(row)
        state.table.put(msgspec.structs.replace(pod, owner=f"ReplicaSet/web-{at % 2}"))
    assert evaluate(state, KEY, NOW).headroom is None


def test_what_is_refused_is_said(memory):
    """The answer about an HPA says whether learned headroom is used, and how it would have done."""
    core = HorizontalCore()
    core.state = state_of(memory)
    [explainer] = ENTRY.explainers
    [line] = [
        one for one in explainer.lines(core, "default/web", NOW, "") if "headroom" in one and "%" in one
    ]
    assert "learned headroom is used" in line
    core.state = state_of(None)
    decide(core.state, NOW)
    absorb(core.state, decide(core.state, NOW), [])
    lines = explainer.lines(core, "default/web", NOW, "")
    assert any("headroom is being learned from 0 minutes" in one for one in lines)


def test_a_replay_decides_the_same(memory):
    """A core that knows only the record proposes the same."""
    state = state_of(memory)
    core = HorizontalCore()
    core.apply(encode_delta(state.dump()), full=True)
    core.state.samples = state.samples
    assert core.state.settings.forecaster == "headroom"
    assert evaluate(core.state, KEY, NOW).raw == evaluate(state, KEY, NOW).raw == 53


def test_it_is_chosen_by_its_flag():
    """``headroom`` is a second stage that needs no plug-in."""
    flags = parse_flags({"horizontal-pod-autoscaler-forecaster": "headroom"}, [ENTRY])
    assert flags.of(Settings).forecaster == "headroom"
    assert ENTRY.plugins(LEARNING) == []
