"""The first line of an explanation: what the HPA has and wants, what holds it back, and until when."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.explain.overview import OVERVIEW, limited_by
from kubetide.horizontal.facts.views import HpaView
from kubetide.horizontal.memory import MemoryEntry, Recommendation, ScaleEvent, ScaleEvents
from kubetide.units.time import Instant, minutes, seconds

KEY = ("default", "web")
NOW = worlds.NOW


def state_of(milli, *, pods=4, hpa=None, memory=(), ups=(), downs=(), more=()):
    """Pods that each use that much of 200m, with a target of 50 %; recommendations as (seconds ago, replicas)."""
    names = [f"p{at}" for at in range(pods)]
    known = [Recommendation(Instant(NOW - seconds(ago)), replicas) for ago, replicas in memory]
    events = ScaleEvents(*([ScaleEvent(NOW - seconds(ago), by) for ago, by in some] for some in (ups, downs)))
    return worlds.state_of(
        hpas=[hpa or worlds.hpa()],
        pods=[*map(worlds.pod, names), *more],
        scales=[worlds.scale(replicas=pods + len(more))],
        usage={("default", name): milli for name in names},
        memory=[MemoryEntry(*KEY, known or [Recommendation(Instant(NOW - minutes(30)), 1)], events)],
    )


def answer(state, now=NOW):
    found = explain(state, KEY, now)
    assert found.lines()[1] == found.answer
    assert found.lines().count(found.answer) == 1
    return found.answer


def policies(direction, *, select="Max", **policy):
    rules = {
        "selectPolicy": select,
        "policies": [{"type": "Pods", "periodSeconds": 60, "value": 1, **policy}],
    }
    return worlds.hpa(behavior={direction: {"stabilizationWindowSeconds": 0, **rules}})


def test_nothing_holds_it():
    """The metric that made the number stands beside it, and whether it is within tolerance."""
    assert answer(state_of(105)) == (
        "It has 4 replicas and wants 4 (cpu utilization 52% of 50%, within tolerance): nothing holds it back."
    )
    assert answer(state_of(150)) == (
        "It has 4 replicas, wants 6 (cpu utilization 75% of 50%), and is to be scaled to 6 now."
    )


def test_a_window_says_until_when_it_holds():
    """That is when the last recommendation that is as high has left the window: then the HPA does scale down."""
    state = state_of(50, memory=((400, 9), (200, 4), (185, 4), (15, 3)))
    until = "2026-03-02T08:01:55Z"
    held = f"the scale-down window of 5m0s holds it at 4 until {until}"
    assert answer(state) == (
        f"It has 4 replicas and wants 2 (cpu utilization 25% of 50%), but {held}, so it stays at 4."
    )
    assert limited_by(explain(state, KEY, NOW)) == f"{held} (2 proposed)"
    assert explain(state, KEY, Instant(NOW + seconds(115))).desired == 4
    assert explain(state, KEY, Instant(NOW + seconds(116))).desired == 3


def test_a_window_that_changes_nothing_is_not_named():
    """Where more is wanted than the maximum in any case, only that holds it; where less is wanted, both do."""
    full = worlds.hpa(maximum=4)
    assert answer(state_of(150, hpa=full, memory=((20, 9),))) == (
        "It has 4 replicas and wants 6 (cpu utilization 75% of 50%), but maxReplicas holds it at 4, so it stays at 4."
    )
    held = answer(state_of(75, hpa=full, memory=((20, 9),)))
    assert "the scale-down window of 5m0s holds it at 9" in held
    assert "and maxReplicas holds it at 4, so it stays at 4." in held


def test_each_direction_has_its_own_window():
    """A scale-up window names the lowest recommendation that holds."""
    hpa = worlds.hpa(behavior={"scaleUp": {"stabilizationWindowSeconds": 60}})
    state = state_of(150, hpa=hpa, memory=((50, 4), (40, 5)))
    assert (
        "but the scale-up window of 1m0s holds it at 4 until 2026-03-02T08:00:10Z, so it stays at 4."
        in answer(state)
    )
    assert explain(state, KEY, Instant(NOW + seconds(10))).desired == 5


@pytest.mark.parametrize(
    ("state", "held"),
    [
        pytest.param(state_of(150, hpa=worlds.hpa(maximum=5)), "maxReplicas holds it at 5, so it is to be scaled to 5 now.", id="maximum"),
        pytest.param(state_of(150, hpa=worlds.hpa(maximum=4)), "maxReplicas holds it at 4, so it stays at 4.", id="at the maximum"),
        pytest.param(state_of(25, hpa=worlds.hpa(minimum=4)), "minReplicas holds it at 4, so it stays at 4.", id="minimum"),
        pytest.param(state_of(900), "the default scale-up limit (double, or 4) allows no more than 8 at once, so it is to be scaled to 8 now.", id="doubled"),
        pytest.param(state_of(150, hpa=policies("scaleUp", select="Disabled")), "its behavior disables scale-up, so it stays at 4.", id="disabled"),
        pytest.param(state_of(150, hpa=policies("scaleUp")), "the scale-up policies allow no more than 5 at once, so it is to be scaled to 5 now.", id="policy"),
        pytest.param(state_of(25, hpa=policies("scaleDown"), downs=((20, 1),)), "the scale-down policies allow no fewer than 4 until 2026-03-02T08:00:40Z, so it stays at 4.", id="policy that is used up"),
    ],
)  # fmt: skip
def test_limits_are_named(state, held):
    """A bound, or the policies and when the change that they count is over."""
    assert answer(state).endswith(f", but {held}")
    assert held.partition(", so")[0] in limited_by(explain(state, KEY, NOW))


def test_a_policy_allows_more_at_the_time_that_is_named():
    """The change is out of its period then, not before."""
    state = state_of(25, hpa=policies("scaleDown"), downs=((20, 1),))
    assert explain(state, KEY, Instant(NOW + seconds(39))).desired == 4
    assert explain(state, KEY, Instant(NOW + seconds(40))).desired == 3


def test_pods_without_a_node_are_in_the_first_line():
    """Who asks why load is not served reads at once that replicas have no node."""
    waiting = worlds.pod("x", phase="Pending", ready="False", started=None)
    assert answer(state_of(150, more=[waiting])) == (
        "It has 5 replicas (1 of them without a node), wants 6 (cpu utilization 75% of 50%, with 1 pod filled in), and is "
        "to be scaled to 6 now."
    )
    assert answer(state_of(125, more=[waiting])).endswith(
        "and wants 5 (cpu utilization 62% of 50%, with 1 pod filled in, within tolerance): nothing holds it back."
    )


def test_metrics_that_fail_are_in_the_first_line():
    """Where no number is decided, and where another metric decides it."""
    queue = worlds.external({"averageValue": "10"})
    blind = state_of(100, hpa=worlds.hpa(metrics=[queue]))
    assert answer(blind).startswith(
        "It has 4 replicas, and keeps them, as it cannot tell how many it wants: external queue: "
    )
    one_eyed = state_of(150, hpa=worlds.hpa(metrics=[worlds.utilization(50), queue]))
    assert "and is to be scaled to 6 now. A metric fails: external queue: " in answer(one_eyed)


def test_a_number_that_no_metric_made_says_where_it_comes_from():
    """A fallback stands in for metrics that fail."""
    queue = worlds.external({"averageValue": "10"})
    fallback = {"horizontal.kubetide.io/fallback": "static=6"}
    hpa = msgspec.structs.replace(worlds.hpa(metrics=[queue]), annotations=fallback)
    assert answer(state_of(100, hpa=hpa)).startswith(
        "It has 4 replicas, wants 6 (its fallback), and is to be scaled to 6 now. A metric fails: external queue: "
    )


def test_a_scale_that_cannot_be_read_has_no_number():
    """Nobody knows how many replicas there are: 0 would be wrong."""
    unread = worlds.scale(error="forbidden", error_stage="query")
    state = worlds.state_of(hpas=[worlds.hpa()], pods=[], scales=[unread], usage={})
    why = "the scale of the target cannot be read: failed to query scale subresource for Deployment/default/web: forbidden"
    assert answer(state) == f"How many replicas it has is not known: {why}."
    found = explain(state, KEY, NOW)
    assert (found.current, found.desired) == (None, None)
    assert "Deployment/default/web, replicas not known, bounds" in found.lines()[0]
    core = HorizontalCore()
    core.state = state
    [table] = OVERVIEW.tables(core, NOW)
    [row] = (dict(zip(table.columns, one, strict=True)) for one in table.rows)
    assert (row["current"], row["desired"], row["limited by"]) == (None, None, why)
    assert table.sentence == "HPAs whose scale or metric cannot be read: default/web."


def test_the_page_begins_with_hpas_that_cannot_have_what_they_want():
    """A metric that fails, or a maximum below what is proposed; what a window or a policy holds is ordinary."""
    core = HorizontalCore()

    def sentence(state):
        core.state = state
        [table] = OVERVIEW.tables(core, NOW)
        return table.sentence

    queue = worlds.external({"averageValue": "10"})
    assert sentence(state_of(100, hpa=worlds.hpa(metrics=[queue]))) == (
        "HPAs whose scale or metric cannot be read: default/web."
    )
    assert sentence(state_of(150, hpa=worlds.hpa(maximum=5))) == (
        "HPAs that would go above their maximum: default/web."
    )
    assert sentence(state_of(150, hpa=policies("scaleUp"))) == ""


def test_a_window_is_not_waited_for_where_scaling_is_disabled():
    """The window ends at a time, and nothing happens then: what disables the direction is the answer."""
    off = worlds.hpa(behavior={"scaleDown": {"selectPolicy": "Disabled"}})
    held = "It has 4 replicas and wants 2 (cpu utilization 25% of 50%), but its behavior disables scale-down, so it stays at 4."
    assert answer(state_of(50, hpa=off, memory=[(100, 4)])) == held
    assert answer(state_of(50, hpa=off)) == held


def test_hpas_over_the_same_pods_decide_nothing_and_say_what_ends_it():
    """The page of status begins with both; the answer has what to change."""
    hpas = [worlds.hpa(), worlds.hpa(name="other")]
    mine = worlds.scale(replicas=2)
    scales = [mine, msgspec.structs.replace(mine, name="other")]
    state = worlds.state_of(hpas=hpas, pods=[worlds.pod("a"), worlds.pod("b")], scales=scales, usage={})
    core = HorizontalCore()
    core.state = state
    [table] = OVERVIEW.tables(core, NOW)
    assert table.sentence == "HPAs that decide nothing: default/other, default/web."
    found = explain(state, KEY, NOW)
    assert found.way_out == (
        "let one HPA alone have these pods: put all metrics into it, or make the selectors of the targets differ"
    )
    assert found.lines()[2] == f"way out: {found.way_out}"


def test_a_metric_that_fails_holds_scale_downs():
    """What the others propose is told: it is fewer than there are, or it would be done."""
    queue = worlds.external({"averageValue": "10"})
    said = answer(state_of(25, hpa=worlds.hpa(metrics=[worlds.utilization(50), queue])))
    assert said.startswith(
        "It has 4 replicas, and keeps them, as nothing is scaled down while a metric fails (cpu utilization proposes 1): "
        "external queue: "
    )


def test_a_scale_that_cannot_be_read_says_what_to_look_at():
    """The target does not exist, its kind is not served, or it may not be read."""
    lost = worlds.scale(error='deployments.apps "web" not found', error_stage="query")
    found = explain(worlds.state_of(hpas=[worlds.hpa()], pods=[], scales=[lost], usage={}), KEY, NOW)
    assert found.lines()[1].endswith('deployments.apps "web" not found.')
    assert found.way_out.startswith("see whether the target of scaleTargetRef exists and has a scale")


def test_pods_that_cannot_be_measured_are_not_looked_for_in_the_metrics():
    """Pods without a node have no usage, and no metrics server can tell it; likewise where there are no pods."""
    waiting = [worlds.pod(name, phase="Pending", ready="False", started=None) for name in ("a", "b")]
    scales = [worlds.scale(replicas=2)]

    def way_out(pods):
        return explain(
            worlds.state_of(hpas=[worlds.hpa()], pods=pods, scales=scales, usage={}), KEY, NOW
        ).way_out

    assert way_out(waiting) == "see why its pods have no node: kubetide explain pod default/a"
    assert (
        way_out([])
        == "it counts no pod: see whether Deployment/default/web makes its pods, and with the labels app=web"
    )
    assert "kubectl top pods" in way_out([waiting[0], worlds.pod("c")])


def test_a_metric_that_fails_says_what_to_look_at():
    """A request that is missing is named with its container; of an API that lacks the metric, which one it is."""
    queue = worlds.external({"averageValue": "10"})
    assert explain(state_of(100, hpa=worlds.hpa(metrics=[queue])), KEY, NOW).way_out == (
        "see whether the external metrics API serves the metric, and its selector names a series"
    )
    bare = worlds.pod("bare", cpu=0)
    assert explain(state_of(100, more=[bare]), KEY, NOW).way_out == (
        "set resources.requests.cpu of container app, or use a target of type AverageValue"
    )
    assert explain(state_of(100), KEY, NOW).way_out == ""


def test_an_hpa_that_asks_no_metrics_says_why():
    """A target at zero is left alone; one outside its bounds is brought inside."""
    assert answer(state_of(0, pods=0)) == (
        "It has 0 replicas: the target is at 0 replicas, so the HPA leaves it alone until somebody scales it to 1 or more."
    )
    assert answer(state_of(100, hpa=worlds.hpa(minimum=6))) == (
        "It has 4 replicas and is to be scaled to 6 now: 4 replicas are outside minReplicas 6 to maxReplicas 100; metrics "
        "are not asked."
    )
    assert limited_by(explain(state_of(0, pods=0), KEY, NOW)).startswith("the target is at 0 replicas")


def test_a_pause_is_named():
    """What an annotation holds is said as such."""
    made = worlds.hpa()
    paused = HpaView(
        made.namespace, made.name, "", made.spec, annotations={"horizontal.kubetide.io/pause": "all"}
    )
    assert "but the change from 4 to 6 is paused by the annotation" in answer(state_of(150, hpa=paused))


def test_the_core_answers_with_it_first():
    """`kubetide explain hpa` begins with the answer."""
    from kubetide.horizontal.explain.entry import EXPLAINING

    core = HorizontalCore()
    core.state = state_of(150)
    assert EXPLAINING.explainers[0].lines(core, "default/web", NOW, "")[0].startswith("It has 4 replicas")


def test_a_row_stays_short_however_many_share_a_selector():
    """The page of `kubetide status` cuts the names of two hundred HPAs whose targets have the same pods."""
    names = [f"web-{number}" for number in range(200)]
    state = worlds.state_of(
        hpas=[worlds.hpa(name) for name in names],
        pods=[worlds.pod("web-0")],
        scales=[msgspec.structs.replace(worlds.scale(name), selector="app=web") for name in names],
        usage={("default", "web-0"): 100},
    )
    said = limited_by(explain(state, ("default", "web-7"), NOW))
    assert "are controlled by multiple HPAs: [default/web-0 " in said
    assert len(said) == 300
