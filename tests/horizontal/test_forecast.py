"""Forecasts in the loop: they only add, within the HPA's own limits, and a record holds all of it."""

from __future__ import annotations

from operator import attrgetter

import msgspec
import pytest
from tests.forecast.loads import LEARNED, Player, hourly
from tests.horizontal import worlds

from kubetide.forecast.rows import ForecastMemory
from kubetide.horizontal.core import HorizontalCore, encode_delta
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.entry import ENTRY
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.memory import MemoryEntry, Recommendation
from kubetide.horizontal.options.annotations import PREFIX
from kubetide.horizontal.options.emptiest_node import costs_of_emptiest, pods_by_node
from kubetide.horizontal.options.forecasting import intents, of_targets, score_lines
from kubetide.horizontal.reasons import VOCABULARY, reasons_of
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.rules.windows import down_window, holds_longer
from kubetide.loop import FlagError, parse_flags
from kubetide.plan.board import Intent, Workload
from kubetide.units.time import Instant, after, before, hours, minutes, seconds

KEY, NOW = ("default", "web"), worlds.NOW
OLD = [Recommendation(Instant(NOW - minutes(1)), 1)]


@pytest.fixture(scope="module")
def memory():
    """The memory of a load of 10 pods' worth that jumps to 30 each hour, a minute before the next jump."""
    begin = Instant(NOW - LEARNED - minutes(19))
    player = Player(start=begin)
    player.run(hourly(), LEARNED + minutes(19))
    return player.forecasts.dump("web")


def state_of(memory=None, *, pods=15, milli=100, limit=200, spec=None, **options):
    """Pods that each use that much of 200m, with a target of 70 %."""
    view = worlds.hpa(**({"target": 70} | (spec or {})))
    annotations = {PREFIX + name.replace("_", "-"): text for name, text in options.items()}
    names = [f"p{index:02}" for index in range(pods)]
    return worlds.state_of(
        hpas=[msgspec.structs.replace(view, annotations=annotations)],
        pods=[worlds.pod(name, cpu_limit=limit, node=f"n{index % 4}") for index, name in enumerate(names)],
        scales=[worlds.scale(replicas=pods)],
        usage={("default", name): milli for name in names},
        memory=[MemoryEntry(*KEY, OLD, forecast=memory)],
    )


def codes(state):
    result = absorb(state, decide(state, NOW), [])
    return {reason.code for reason in reasons_of(result.settlements[0], state.specs[KEY])}


def test_without_the_option_nothing_is_forecast(memory):
    """Without the option the same memory changes nothing, and is dropped."""
    plain = state_of(memory)
    assert evaluate(plain, KEY, NOW).desired == evaluate(state_of(), KEY, NOW).desired
    assert codes(state_of(memory)) == codes(state_of())


def test_pods_are_there_before_the_load(memory):
    """A minute before the onset the number is what it needs at full use; the HPA's own proposal is still remembered."""
    state = state_of(memory, forecast="strict")
    verdict = evaluate(state, KEY, NOW)
    assert verdict.reactive < verdict.desired
    assert verdict.desired == 30, "at most doubled in a tick"
    assert verdict.raw == evaluate(state_of(), KEY, NOW).raw
    assert verdict.why.startswith("load forecast for ")
    assert "Forecast" in codes(state)


def test_bounds_and_policies_hold(memory):
    """The forecast goes no further than maxReplicas and the policies of the HPA."""
    assert evaluate(state_of(memory, forecast="strict", spec={"maximum": 20}), KEY, NOW).desired == 20
    slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}
    assert evaluate(state_of(memory, forecast="strict", spec={"behavior": slow}), KEY, NOW).desired == 17


def test_it_never_lowers_the_number(memory):
    """Where the HPA desires more than the forecast, it gets that."""
    busy = state_of(memory, pods=60, milli=190, forecast="strict")
    assert evaluate(busy, KEY, NOW).desired == evaluate(state_of(pods=60, milli=190), KEY, NOW).desired > 60


def test_a_pause_holds_a_forecast_too(memory):
    """A paused HPA is not scaled out for a forecast."""
    assert evaluate(state_of(memory, forecast="strict", pause="out"), KEY, NOW).desired == 15


@pytest.mark.parametrize(
    ("maximum", "end"),
    [
        (100, "the default scale-up limit (double, or 4) allows no more than 30 at once, so it is to be scaled to 30 now."),
        (20, "maxReplicas holds it at 20, so it is to be scaled to 20 now."),
        (15, "maxReplicas holds it at 15, so it stays at 15."),
    ],
)  # fmt: skip
def test_the_answer_names_what_limits_a_forecast(memory, maximum, end):
    """Who reads how many pods are forecast, and sees fewer, is told why; also where the forecast changes nothing."""
    answer = explain(state_of(memory, forecast="strict", spec={"maximum": maximum}), KEY, NOW).answer
    assert answer.endswith(f" pods until it is over, and {end}")


def test_a_forecast_that_changes_nothing_is_not_in_the_answer(memory):
    """Where the HPA desires more than the forecast, only the pause holds it; a limit of both is named once."""
    paused = explain(state_of(memory, pods=60, milli=190, forecast="strict", pause="all"), KEY, NOW)
    assert len(paused.holds) == 1
    assert "is paused" in paused.holds[0]
    limited = explain(state_of(memory, milli=400, forecast="strict"), KEY, NOW)
    assert limited.holds == ("the default scale-up limit (double, or 4) allows no more than 30 at once",)


@pytest.mark.parametrize(
    ("milli", "limit", "more"), [(200, 200, True), (190, 200, False), (200, 400, False), (200, None, False)]
)
def test_a_load_at_the_cpu_limit_counts_more(milli, limit, more):
    """Only pods that use all of their CPU limits are taken to hide load; ``strict`` leaves that out."""
    plain, boosted, strict = (
        evaluate(state_of(milli=milli, limit=limit, **options), KEY, NOW).raw
        for options in ({}, {"forecast": "calendar"}, {"forecast": "strict"})
    )
    assert (boosted > plain) is more
    assert strict == plain
    if more:
        answer = explain(state_of(milli=milli, limit=limit, forecast="calendar"), KEY, NOW).answer
        assert "wants 27 (as its pods are at their CPU limits)" in answer
        assert (plain, boosted) == (22, 27), "15 pods at 100 % of a target of 70 %, and that 1.25 times"


@pytest.mark.parametrize("behavior", [None, {"scaleUp": {"stabilizationWindowSeconds": 0}}])
@pytest.mark.parametrize(
    ("age", "of_before", "desired"),
    [(4, 14, 14), (8, 14, 11), (14, 14, 11), (16, 14, 3), (8, 40, 15)],
)
def test_scale_downs_have_a_long_window(age, of_before, desired, behavior):
    """Upstream's five minutes hold all of it, fifteen what serves it at full use, 1.1 times; never more than there is."""
    old = [Recommendation(before(NOW, minutes(age)), of_before)]
    found = {}
    for mode in ("calendar", "strict"):
        state = state_of(milli=20, forecast=mode, spec={"behavior": behavior} if behavior else None)
        state.recommendations.forget(KEY)
        state.recommendations.put(KEY, old)
        found[mode] = evaluate(state, KEY, NOW).desired
    assert found == {"calendar": desired, "strict": of_before if age < 5 else 3}


def test_what_the_long_window_holds_is_still_remembered():
    """A recommendation is overwritten once no window holds it: after five minutes without the long window."""
    for mode, age, slot in (("calendar", 6, -1), ("calendar", 16, 0), ("strict", 6, 0), ("strict", 4, -1)):
        state = state_of(milli=20, forecast=mode)
        state.recommendations.forget(KEY)
        state.recommendations.put(KEY, [Recommendation(before(NOW, minutes(age)), 14)])
        assert evaluate(state, KEY, NOW).slot == slot


@pytest.mark.parametrize("seconds_stated", [0, 60, 600])
def test_a_window_that_the_hpa_states_is_the_only_one(seconds_stated):
    """The long window replaces no window that a person has stated."""
    stated = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": seconds_stated}}}
    state = state_of(forecast="calendar", spec=stated)
    assert not holds_longer(state, state.specs[KEY])
    assert down_window(state.specs[KEY]) == seconds(seconds_stated)


def test_scale_downs_have_no_long_window_where_it_does_not_pay(memory):
    """With a score of what was held and never needed, or of too high a cost, upstream's five minutes are all."""
    lines = {}
    for score in ((0.0, 0.0, 0.0, 0.0), (0.0, 100.0, 0.0, 0.0), (50.0, 100.0, 400.0, 1000.0)):
        state = state_of(msgspec.structs.replace(memory, long_window=score), milli=20, forecast="calendar")
        state.recommendations.forget(KEY)
        state.recommendations.put(KEY, [Recommendation(before(NOW, minutes(8)), 14)])
        lines[score] = [line for line in score_lines(state, KEY, NOW) if "window" in line]
        assert evaluate(state, KEY, NOW).stabilized == (3 if any(score) else 11)
    assert list(lines.values()) == [
        [],
        ["forecast: scale-downs have no window of 15m0s: what it held was seldom needed"],
        ["forecast: scale-downs have no window of 15m0s: what it held has cost more than the budget"],
    ]


def test_nodes_are_reported_before_pods(memory):
    """The board shows the demand at the onset, its time, and until when nodes are held for it."""
    state = state_of(memory, forecast="calendar")
    [intent] = intents(state, NOW, attrgetter("kind"))
    assert (intent.workload.kind, intent.workload.name, intent.replicas) == ("Deployment", "web", 33)
    assert NOW - minutes(1) <= intent.due <= after(NOW, minutes(2))
    assert intent.until == after(intent.due, minutes(5))
    assert intent.start == minutes(1), "the pods took a minute"
    assert intents(state_of(memory), NOW, attrgetter("kind")) == []


@pytest.mark.parametrize(
    ("pause", "pods", "follows"),
    [("", 15, True), ("in", 15, True), ("out", 15, False), ("all", 15, False), ("", 0, False)],
)
def test_nodes_are_reported_for_pods_only_that_the_hpa_would_ask_for(memory, pause, pods, follows):
    """Nobody makes the pods while scaling out is paused, or the target is off; what a table sizes by itself comes all the same."""
    paused = {"pause": pause} if pause else {}
    state = state_of(memory, pods=pods, forecast="calendar", **paused)
    assert bool(intents(state, NOW, attrgetter("kind"))) == follows
    minimum = Intent(Workload("default", "HorizontalPodAutoscaler", "web"), 20, NOW, "schedules")
    assert bool(of_targets(state, [minimum], attrgetter("kind"))) == follows
    size = msgspec.structs.replace(minimum, sizes=True)
    assert [one.workload.kind for one in of_targets(state, [size], attrgetter("kind"))] == ["Deployment"]


def test_a_replay_decides_the_same(memory):
    """Ticks that follow a full record come out the same in a core that knows only the record."""
    state = state_of(memory, forecast="calendar")
    core = HorizontalCore()
    core.apply(encode_delta(state.dump()), full=True)
    core.state.samples = state.samples
    now = NOW
    for _ in range(12):
        commands = decide(state, now)
        outcomes = [ScaleOutcome(*write_key(write), now) for write in commands.writes]
        again = decide(core.state, now)
        assert [one.desired for one in again.verdicts] == [one.desired for one in commands.verdicts]
        absorb(state, commands, outcomes)
        absorb(core.state, again, outcomes)
        now = after(now, seconds(30))
    assert state.forecasts.dump(KEY) == core.state.forecasts.dump(KEY)


def write_key(write):
    return write.namespace, write.name


def test_memory_of_a_forecast_survives_json(memory):
    """The memory in a full record reads back unchanged."""
    assert msgspec.json.decode(msgspec.json.encode(memory), type=ForecastMemory) == memory


def test_explain_shows_the_score_and_what_comes(memory):
    """The answer about an HPA ends with its score card and the next onsets."""
    core = HorizontalCore()
    core.state = state_of(memory, forecast="calendar")
    [explainer] = ENTRY.explainers
    lines = [line for line in explainer.lines(core, "default/web", NOW, "") if line.startswith("forecast: ")]
    assert "forecast onsets came true" in lines[0]
    assert "no window of 15m0s" in lines[1], "an onset an hour needs nothing of what fifteen minutes hold"
    assert "comes again every 1h0m0s" in lines[2]
    [first, *_] = ENTRY.outlook(core, NOW, hours(1))
    assert (first.subject, "pods are held" in first.text) == ("default/web", True)


@pytest.mark.parametrize(
    ("pods", "spec", "options", "said"),
    [
        (15, {}, {}, "; 33 pods are held from 2m0s before"),
        (15, {"maximum": 20}, {}, "; 20 pods are held from 2m0s before, as maxReplicas allows no more"),
        (15, {}, {"pause": "out"}, "; no pods are held for it, as scaling out is paused"),
        (15, {}, {"pause": "in"}, "; 33 pods are held from 2m0s before"),
        (0, {}, {}, "; no pods are held for it, as its target is at 0 replicas"),
    ],
)
def test_the_plan_says_how_many_pods_are_held_for_an_onset(memory, pods, spec, options, said):
    """As many as the HPA may ask for: none while it is paused or its target is off, and no more than its maximum."""
    core = HorizontalCore()
    core.state = state_of(memory, pods=pods, spec=spec, forecast="calendar", **options)
    [first, *_] = ENTRY.outlook(core, NOW, hours(1))
    assert first.text.endswith(said)


def test_what_came_is_a_reason():
    """One sentence reports the forecast, the observed load and the cost."""
    fields = {"forecast": 30, "came": 28.4, "at": "T", "period": "1h0m0s", "cost": 12.5}
    assert VOCABULARY.text(VOCABULARY.reason("ForecastCame", "a/b", **fields)) == (
        "of the 30 pods' worth of load forecast for T (every 1h0m0s) 28.4 came; it cost 12.5 pod-minutes"
    )


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("horizontal-pod-autoscaler-forecast", "prophet", "there is calendar and strict"),
        ("horizontal-pod-autoscaler-forecast-budget", 11.0, "give a share from 0 to 10"),
        ("horizontal-pod-autoscaler-forecaster", "prophet", "there is no 'prophet'"),
    ],
)
def test_wrong_flags_are_refused(flag, value, said):
    """The error names the flag and the known values."""
    with pytest.raises(FlagError, match=said):
        parse_flags({flag: value}, [ENTRY])


def test_the_emptiest_node_becomes_free():
    """The pods of the node with the fewest pods go first; DaemonSet pods and ended ones do not count; those not ready go anyway."""
    pods = [
        *(worlds.pod(f"a{at}", node="a") for at in range(3)),
        *(worlds.pod(f"b{at}", node="b") for at in range(2)),
        worlds.pod("starting", node="c", ready="False"),
        worlds.pod("evicted", node="b", phase="Failed", ready="False"),
        worlds.pod("done", node="b", phase="Succeeded", owner="Job/report"),
    ]
    others = [worlds.pod(f"d{at}", node="b", owner="DaemonSet/logs") for at in range(9)]
    by_node = pods_by_node([*pods, *others])
    assert by_node == {"a": 3, "b": 2, "c": 1}
    assert costs_of_emptiest(pods, by_node, 3) == (("b0", -2), ("b1", -1))
    assert costs_of_emptiest(pods, by_node, 1) == ()
    state = state_of(milli=60, emptiest_node_first="true")
    state.recommendations.forget(KEY)
    state.recommendations.put(KEY, OLD)
    costs = evaluate(state, KEY, NOW).costs
    assert [pod for pod, _ in costs[:3]] == ["p03", "p07", "p11"], (
        "of four nodes n3 has three pods, all others four"
    )


def test_a_budget_of_nothing_holds_nothing(memory):
    """Without credit nothing is held."""
    spent = msgspec.structs.replace(memory, credit=-1.0)
    assert (
        evaluate(state_of(spent, forecast="strict"), KEY, NOW).desired
        == evaluate(state_of(), KEY, NOW).desired
    )
