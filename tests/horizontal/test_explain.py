"""The explanation of one HPA: only what is in force, said once, and numbers that add up."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.explain.calculation import PROPOSALS, proposal_reason, short_name
from kubetide.horizontal.memory import MemoryEntry, Recommendation
from kubetide.horizontal.metrics.resource import present
from kubetide.horizontal.metrics.types import Metric, Tally, Tolerance
from kubetide.horizontal.reasons import VOCABULARY
from kubetide.horizontal.rules.proposal import proposal_by_utilization
from kubetide.units.time import Instant, minutes, seconds

KEY = ("default", "web")
NOW = worlds.NOW
PENDING = {"phase": "Pending", "ready": "False"}


def remembered(*entries):
    """A memory of (seconds ago, replicas)."""
    known = [Recommendation(Instant(NOW - seconds(ago)), replicas) for ago, replicas in entries]
    return [MemoryEntry(*KEY, known)]


def state_of(pods=("a", "b"), *, milli=100, spec=None, memory=(), more=()):
    """Pods that each use that much of 200m, with a target of 50 %."""
    ready = [worlds.pod(name) for name in pods]
    return worlds.state_of(
        hpas=[worlds.hpa(**(spec or {}))],
        pods=[*ready, *more],
        scales=[worlds.scale(replicas=len(pods) + len(more))],
        usage={("default", name): milli for name in pods},
        memory=memory,
    )


def lines_of(state, now=NOW):
    return [line.strip() for line in explain(state, KEY, now).lines()]


def windows_of(state):
    return [
        [
            (one.replicas, (NOW - one.last) // seconds(1), (NOW - one.first) // seconds(1))
            for one in window.remembered
        ]
        for window in explain(state, KEY, NOW).windows
    ]


def test_only_the_window_in_force_is_listed():
    """Recommendations older than the window are missing; its edge still counts without behaviour."""
    memory = remembered((3600, 9), (301, 8), (300, 7), (285, 7), (15, 2))
    assert windows_of(state_of(memory=memory)) == [[(2, 15, 15), (7, 285, 300)]]


def test_each_direction_has_its_own_window():
    """With behaviour the edge is outside, and the two windows list what each of them sees."""
    rules = {"stabilizationWindowSeconds": 60}
    spec = {"behavior": {"scaleUp": rules, "scaleDown": {"stabilizationWindowSeconds": 300}}}
    memory = remembered((300, 9), (75, 3), (60, 4), (45, 4), (30, 4), (15, 2))
    assert windows_of(state_of(spec=spec, memory=memory)) == [
        [(2, 15, 15), (4, 30, 45)],
        [(2, 15, 15), (4, 30, 60), (3, 75, 75)],
    ]


def test_a_tick_left_out_parts_equal_recommendations():
    """Equal numbers are put together only where every tick between them said so."""
    memory = remembered((120, 3), (105, 3), (60, 3), (45, 3), (15, 3))
    assert windows_of(state_of(memory=memory)) == [[(3, 15, 15), (3, 45, 60), (3, 105, 120)]]


def test_the_replicas_found_at_the_start_are_named():
    """In the first tick, and while they are remembered, they count as a recommendation and are listed as found."""
    state = state_of(("a", "b", "c", "d"), milli=25)
    lines = lines_of(state)
    assert "recommendations, newest first: 4 (2026-03-02T08:00:00Z, found at the start)" in lines
    assert "after stabilization: 4" in lines
    assert [reason.code for reason in explain(state, KEY, NOW).reasons][-2:] == [
        "StabilizedAtStart",
        "NothingToDo",
    ]
    absorb(state, decide(state, NOW), [])
    later = lines_of(state, Instant(NOW + seconds(15)))
    assert (
        "recommendations, newest first: 1 (2026-03-02T08:00:00Z), 4 (2026-03-02T08:00:00Z, found at the start)"
        in later
    )


def test_nothing_is_said_twice():
    """After the answer comes the way to the number, and nothing again."""
    state = state_of(milli=200)
    assert lines_of(state)[1:] == [
        "It has 2 replicas, wants 4 (cpu utilization 100% of 50%), and is to be scaled to 4 now.",
        "cpu utilization: 100% of 50%: ratio 2 x 2 pods = 4, so 4 replicas",
        "pods: 2 of 2 count",
        "use: 200m of 200m requested a pod, 400m of 400m in all",
        "largest proposal: 4",
        "scale-down window 5m0s (the flag's): the highest recommendation holds",
        "recommendations, newest first: 2 (2026-03-02T08:00:00Z, found at the start)",
        "after stabilization: 4",
        "at most double, or 4, at once: 4",
        "after limits, bounds 1 to 100: 4 (DesiredWithinRange)",
        "without stabilization, policies or tolerance: the same",
    ]


def test_without_a_proposal_the_reasons_speak():
    """A target at zero, outside its bounds, or without samples has no way to show, and says why."""
    assert lines_of(state_of(()))[1:] == [
        "It has 0 replicas: the target is at 0 replicas, so the HPA leaves it alone until somebody scales it to 1 or more."
    ]
    outside = lines_of(state_of(spec={"minimum": 5}))
    assert outside[1:] == [
        "It has 2 replicas and is to be scaled to 5 now: 2 replicas are outside minReplicas 5 to maxReplicas 100; metrics are not asked.",
    ]
    blind = worlds.state_of(hpas=[worlds.hpa()], pods=[worlds.pod("a")], scales=[worlds.scale()], usage={})
    assert lines_of(blind)[2:] == [
        "way out: see whether kubectl top pods has the pods: metrics-server serves this metric",
        (
            "cpu utilization: failed to get cpu utilization: unable to get metrics for resource cpu: "
            "no metrics returned from resource metrics API"
        ),
        "pods: 0 of 1 count, 1 without a sample",
        "without a sample: a",
        "too few metrics for a decision; the number of replicas stays",
    ]


def test_pods_without_a_node_are_said_to_be_that():
    """Among pods that are not ready those without a node are counted separately."""
    waiting = [worlds.pod("x", **PENDING, started=None), worlds.pod("y", **PENDING)]
    deleted = worlds.pod("z", deleting=True)
    lines = lines_of(state_of(milli=200, more=[*waiting, deleted, worlds.pod("w")]))
    assert (
        "pods: 2 of 6 count, 2 not ready (of these 1 without a node), 1 without a sample, 1 failing or being deleted"
        in lines
    )
    assert "not ready: y" in lines
    assert "not ready, without a node: x" in lines
    assert not [line for line in lines if line.startswith("pods without a node")]


def test_pods_without_a_node_are_named_where_no_metric_is_about_pods():
    """An external metric says nothing of pods, and a target outside its bounds asks no metric."""
    queue = {"metrics": [worlds.external({"averageValue": "10"})]}
    waiting = worlds.pod("x", **PENDING, started=None)
    for spec in (queue, {"minimum": 5}):
        answer, *lines = lines_of(state_of(spec=spec, more=[waiting]))[1:]
        assert answer.startswith("It has 3 replicas (1 of them without a node)")
        assert "pods without a node: x" in lines


@pytest.mark.parametrize(
    ("tally", "working"),
    [
        (
            Tally(pods=8, answered=7, ready=7, samples=7, matched=7, matched_usage=630, requests=700,
                  unready=1, unready_requests=0),
            "90% of 60%: ratio 1.5; with 1 pod filled in (1 not ready, 0 without a sample) 1.5 x 8 pods = 12, so 12 replicas",
        ),
        (
            Tally(pods=8, answered=7, ready=7, samples=7, matched=7, matched_usage=630, requests=700,
                  unready=1, unready_requests=100),
            "90% of 60%: ratio 1.5; with 1 pod filled in (1 not ready, 0 without a sample) 1.3 x 8 pods = 10.4, so 11 replicas",
        ),
        (
            Tally(pods=8, answered=8, ready=8, samples=8, matched=8, matched_usage=500, requests=800),
            "62% of 60%: ratio 1.033 is within tolerance 0.9 to 1.1, so 8 replicas",
        ),
        (
            Tally(pods=8, answered=4, ready=4, samples=4, matched=4, matched_usage=320, requests=400,
                  unready=4, unready_requests=400),
            "80% of 60%: ratio 1.333; with 4 pods filled in (4 not ready, 0 without a sample) 0.6667, which turns the direction and changes nothing, so 8 replicas",
        ),
    ],
)  # fmt: skip
def test_the_working_adds_up(tally, working):
    """The ratio that counted comes before the pods that it is multiplied with."""
    metric = Metric("Resource", "cpu", utilization=60)
    assert sentence(metric, tally, current=8) == f"cpu utilization: {working}"


def sentence(metric, tally, *, current):
    tolerance = Tolerance(0.1, 0.1)
    found = present(metric, proposal_by_utilization(tally, current, metric.utilization, tolerance))
    reason = proposal_reason(metric, found, tally, tolerance, current, "default/web", VOCABULARY)
    assert reason.code in PROPOSALS
    texts = {name for name, value in reason.fields.items() if isinstance(value, str)}
    assert texts == {"metric", "value", "target"}
    return VOCABULARY.text(reason)


@settings(max_examples=100)
@given(
    ready=st.integers(1, 30),
    unready=st.integers(0, 30),
    missing=st.integers(0, 30),
    percent=st.integers(0, 300),
    current=st.integers(1, 90),
)
def test_a_product_is_rounded_up_to_the_replicas(ready, unready, missing, percent, current):
    """Where the sentence multiplies without an objection, the replicas are the product rounded up."""
    tally = Tally(
        pods=ready + unready + missing, answered=ready, ready=ready, samples=ready, matched=ready,
        matched_usage=percent * ready, requests=100 * ready, unready=unready, unready_requests=100 * unready,
        missing=missing, missing_requests=100 * missing, fill=100 * missing,
    )  # fmt: skip
    text = sentence(Metric("Resource", "cpu", utilization=60), tally, current=current)
    replicas = int(text.rsplit("so ", 1)[1].split()[0])
    if " = " not in text or "changes nothing" in text:
        assert replicas == current
    else:
        # Four digits are shown.
        product = float(text.rsplit(" = ", 1)[1].split(",")[0])
        assert replicas in {ceil(product), ceil(product * (1 + 1e-3)), ceil(product * (1 - 1e-3))}


def test_metrics_have_short_names():
    """Averages are a usage, and a container is named."""
    assert short_name(Metric("Resource", "memory", average_milli=5)) == "memory usage"
    metric = Metric("ContainerResource", "cpu", "app", utilization=50)
    assert short_name(metric) == "cpu utilization of container app"
    assert short_name(Metric("Unheard")) == "Unheard"


def test_a_rescale_leaves_its_window_behind():
    """The explanation is the next tick's decision: asking changes nothing."""
    state = state_of(milli=200)
    before = explain(state, KEY, NOW)
    commands = decide(state, NOW)
    assert explain(state, KEY, NOW) == before
    assert [write.replicas for write in commands.writes] == [before.desired]
    absorb(state, commands, [ScaleOutcome(*KEY, NOW)])
    assert windows_of(state) == [[(4, 0, 0), (2, 0, 0)]]
    assert explain(state, KEY, Instant(NOW + minutes(10))).windows[0].remembered == ()


def test_use_stands_beside_requests():
    """A target that is a share of requests shows what the pods use of them, for one pod and for all."""
    assert "use: 150m of 200m requested a pod, 300m of 400m in all" in lines_of(state_of(milli=150))
    assert "use: 150m of 200m requested" in lines_of(state_of(("a",), milli=150))
