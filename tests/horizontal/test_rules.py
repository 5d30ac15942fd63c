"""The rules by themselves: arithmetic, stabilization, limits, classes, conditions."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.facts.samples import Sample, answer_of
from kubetide.horizontal.facts.specs import Policy, Rules, read_spec
from kubetide.horizontal.memory import Recommendation, Recommendations, ScaleEvent, remember_event
from kubetide.horizontal.metrics.types import Tally, Tolerance
from kubetide.horizontal.rules.grouping import CLASS_NAMES, classify
from kubetide.horizontal.rules.limits import down_limit, limit_plainly, up_limit
from kubetide.horizontal.rules.proposal import proposal_by_average, proposal_by_utilization
from kubetide.horizontal.rules.stabilization import stabilize, stabilize_both_ways
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.status.conditions import (
    GOT_SCALE,
    READY_FOR_NEW_SCALE,
    rescale_failed,
    scale_unreadable,
    with_notes,
)
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.time import Duration, Instant, after, format_rfc3339, minutes, seconds

NOW = worlds.NOW
TOLERANCE = Tolerance(0.1, 0.1)
COUNTS = st.integers(0, 50)


def rules(*policies, select="Max", window=0):
    return Rules(
        seconds(window), select, tuple(Policy(percent, value, seconds(60)) for percent, value in policies)
    )


def counted(**fields):
    ready = fields.get("ready", 0)
    return Tally(pods=10, answered=10, samples=ready, matched=ready, **fields)


# ── limits ──


@pytest.mark.parametrize(
    ("current", "percent", "limit"),
    [(100, 10, 111), (50, 10, 56), (10, 100, 20), (3, 0, 3), (0, 50, 0)],
)
def test_percent_upwards_is_a_plain_double(current, percent, limit):
    """10 % more than 100 is 111, as 100 * 1.1 is a little above 110 in doubles (upstream v1.36)."""
    assert up_limit(current, rules((True, percent)), [], [], NOW) == limit


@pytest.mark.parametrize(
    ("current", "percent", "limit"), [(10, 80, 1), (5, 80, 0), (1000, 7, 929), (10, 100, 0)]
)
def test_percent_downwards_is_truncated(current, percent, limit):
    """80 % less than 10 leaves 1, not 2 (upstream v1.36)."""
    assert down_limit(current, rules((True, percent)), [], [], NOW) == limit


def test_select_policy_chooses_between_changes():
    """Max takes the larger change, Min the smaller one, Disabled none; in both directions."""
    two = (False, 3), (True, 50)
    ups = [up_limit(10, rules(*two, select=select), [], [], NOW) for select in ("Max", "Min", "Disabled")]
    downs = [down_limit(10, rules(*two, select=select), [], [], NOW) for select in ("Max", "Min", "Disabled")]
    assert (ups, downs) == ([15, 13, 10], [5, 7, 10])


def test_changes_within_the_period_count():
    """Replicas added within the period are subtracted from the start, removed ones are added; older events are ignored."""
    recent, old = Instant(NOW - seconds(59)), Instant(NOW - seconds(60))
    ups, downs = [ScaleEvent(recent, 3), ScaleEvent(old, 100)], [ScaleEvent(recent, 1)]
    assert up_limit(10, rules((False, 4)), ups, downs, NOW) == 10 - 3 + 1 + 4


@pytest.mark.parametrize(
    ("desired", "current", "maximum", "expected"),
    [
        (100, 10, 50, (20, "ScaleUpLimit")),
        (100, 1, 50, (4, "ScaleUpLimit")),
        (100, 10, 15, (15, "TooManyReplicas")),
        (0, 10, 50, (2, "TooFewReplicas")),
        (9, 10, 50, (9, "DesiredWithinRange")),
    ],
)
def test_without_behaviour_at_most_double_or_four(desired, current, maximum, expected):
    """Without behaviour one tick at most doubles, or goes to 4, and holds the bounds."""
    assert limit_plainly(desired, current, minimum=2, maximum=maximum) == expected


# ── stabilization ──


def test_a_recommendation_of_the_windows_age_counts_only_without_behaviour():
    """Exactly at the edge of the window the two paths differ (upstream v1.36)."""
    edge = [Recommendation(NOW - minutes(5), 9)]
    both = rules((True, 100), window=300)
    assert stabilize(edge, 3, window=minutes(5), now=NOW) == (9, -1)
    assert stabilize_both_ways(edge, 3, 8, up=both.window, down=both.window, now=NOW) == (3, -1)


def test_an_old_low_recommendation_holds_a_scale_up_back():
    """Within the up window the lowest recommendation holds."""
    low = [Recommendation(NOW - seconds(30), 4)]
    up, down = rules((True, 100), window=60), rules((True, 100), window=0)
    assert stabilize_both_ways(low, 9, 3, up=up.window, down=down.window, now=NOW).replicas == 4


def test_the_last_outdated_slot_is_used_again():
    """The later of two outdated slots is overwritten."""
    old = [Recommendation(NOW - minutes(m), 1) for m in (9, 8, 1)]
    assert stabilize(old, 1, window=minutes(5), now=NOW).slot == 1
    events = [ScaleEvent(NOW - minutes(m), 1) for m in (9, 8, 1)]
    remember_event(events, ScaleEvent(NOW, 7), Duration(minutes(5)))
    assert [event.change for event in events] == [1, 7, 1]
    assert [event.outdated for event in events] == [True, False, False]


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60))
def test_the_table_of_recommendations_is_a_list_for_each_hpa(steps):
    """Whatever is stored, appended or forgotten, the table gives back what plain lists hold."""
    table, lists = Recommendations(), {}
    for count, (number, overwrite) in enumerate(steps):
        key = ("n", f"h{number}")
        if number == 20:
            victim = ("n", "h0")
            table.forget(victim)
            lists.pop(victim, None)
            continue
        known = lists.setdefault(key, [])
        slot = len(known) // 2 if overwrite and known else -1
        new = Recommendation(count, number)
        if slot < 0:
            known.append(new)
        else:
            known[slot] = new
        table.store(np.array([table.row(key)]), np.array([slot]), count, np.array([number]))
    assert {key: table.of(key) for key in lists} == lists


# ── proposals ──


def test_missing_pods_damp_a_scale_down():
    """Missing pods are taken to use all of their request when scaling down."""
    tally = counted(ready=5, missing=5, matched_usage=500, requests=5000, missing_requests=5000, fill=5000)
    found = proposal_by_utilization(tally, 10, 50, TOLERANCE)
    assert (found.utilization, found.ratio, found.filled_ratio) == (10, 0.2, 1.1)
    assert found.replicas == 10


def test_unready_pods_damp_a_scale_up():
    """Unready pods are taken to use nothing when scaling up."""
    tally = counted(ready=4, unready=4, usage=800, missing=0)
    found = proposal_by_average(tally, 8, 100, TOLERANCE)
    assert (found.ratio, found.filled_ratio, found.replicas) == (2.0, 1.0, 8)


def test_at_ratio_one_nothing_is_filled_in():
    """Exactly at the target missing pods play no part."""
    tally = counted(ready=5, missing=5, usage=500)
    assert proposal_by_average(tally, 7, 100, TOLERANCE).replicas == 7


@given(COUNTS, COUNTS, COUNTS, st.integers(0, 10_000), st.integers(1, 2000), st.integers(1, 100))
def test_a_proposal_never_goes_against_its_ratio(ready, unready, missing, usage, target, current):
    """Above the target no proposal with filled-in pods is lower than the current number, below it none is higher."""
    tally = counted(ready=ready, unready=unready, missing=missing, usage=usage * ready)
    found = proposal_by_average(tally, current, target, TOLERANCE)
    if ready == 0:
        assert found == "did not receive metrics for targeted pods (pods might be unready)"
    elif found.filled_ratio is not None:
        assert found.replicas >= current or found.ratio < 1
        assert found.replicas <= current or found.ratio > 1


# ── classes ──


@pytest.mark.parametrize(
    ("changes", "sampled", "cpu", "expected"),
    [
        ({}, True, True, "ready"),
        ({}, False, True, "missing"),
        ({"phase": "Failed"}, True, True, "ignored"),
        ({"deleting": True}, True, True, "ignored"),
        ({"phase": "Pending"}, True, True, "unready"),
        ({"phase": "Succeeded"}, False, True, "missing"),
        ({"ready": ""}, True, True, "unready"),
        ({"ready": ""}, True, False, "ready"),
        ({"ready": "Unknown"}, True, True, "ready"),
        ({"ready": "False"}, True, True, "ready"),
        ({"ready": "False", "ready_since": NOW - minutes(61)}, True, True, "unready"),
        ({"started": NOW - minutes(2), "ready_since": NOW - seconds(20)}, True, True, "unready"),
        ({"started": NOW - minutes(2), "ready_since": NOW - seconds(60)}, True, True, "ready"),
        ({"started": None}, True, True, "unready"),
    ],
)
def test_class_of_a_pod(changes, sampled, cpu, expected):
    """Each pod has the class that the replica calculator of v1.36 gives it."""
    sample = Sample(100, NOW - seconds(5), seconds(30)) if sampled else None
    found = classify(worlds.pod("p", **changes), sample, cpu=cpu, now=NOW, settings=Settings())
    assert CLASS_NAMES[found] == expected


# ── samples ──


def test_a_pod_lacks_a_sample_if_a_container_lacks_the_resource():
    """Sums need every listed container; a container metric needs only its own."""
    samples = PodSamples(
        namespaces=("n",) * 3,
        names=("both", "one", "none"),
        timestamp_ns=np.full(3, NOW),
        window_ns=np.full(3, seconds(30)),
        first=np.array([0, 2, 4, 4]),
        containers=("app", "side", "app", "side"),
        usage={"cpu": ResourceUsage(np.array([1, 2, 4, 0]), np.array([True, True, True, False]))},
    )
    whole, app, nope = answer_of(
        samples, [("cpu", ""), ("cpu", "app"), ("cpu", "nope")], hpa=None, same_pods=False
    ).columns
    assert (whole.milli.tolist()[0], whole.missing) == (3, [1, 2])
    assert (app.milli.tolist()[:2], app.missing) == ([1, 4], [2])
    assert nope.missing == [0, 1, 2]


def test_the_last_of_two_samples_of_a_pod_holds():
    """A pod that occurs twice has its last sample."""
    state = worlds.state_of(
        hpas=[worlds.hpa()], pods=[worlds.pod("a")], scales=[worlds.scale()], usage={("default", "a"): 1}
    )
    twice = worlds.samples({("default", "a"): 5, ("default", "b"): 7})
    twice = msgspec.structs.replace(twice, names=("a", "a"))
    state.samples.take([answer_of(twice, worlds.CPU, hpa=None, same_pods=False)], state.table)
    assert state.samples.sample_at(state.table.rows["default", "a"], ("cpu", "")).milli == 7


@pytest.mark.parametrize("hpa", [None, ("default", "web")], ids=["of the cluster", "of one HPA"])
def test_a_sample_without_the_resource_leaves_an_earlier_one_of_the_pod(hpa):
    """Upstream keeps what an earlier item of the pod said, for pods that are known and for others."""
    state = worlds.state_of(
        hpas=[worlds.hpa()], pods=[worlds.pod("a")], scales=[worlds.scale()], usage={("default", "a"): 1}
    )
    twice = PodSamples(
        namespaces=("default",) * 4,
        names=("a", "a", "other", "other"),
        timestamp_ns=np.full(4, NOW),
        window_ns=np.full(4, seconds(30)),
        first=np.arange(5),
        containers=("app",) * 4,
        usage={"cpu": ResourceUsage(np.array([5, 0, 6, 0]), np.array([True, False] * 2))},
    )
    state.samples.take([answer_of(twice, worlds.CPU, hpa=hpa, same_pods=False)], state.table)
    assert state.samples.sample_at(state.table.rows["default", "a"], ("cpu", "")).milli == 5
    if hpa:
        assert state.samples.unmatched[hpa]["other"]["cpu", ""].milli == 6


# ── conditions ──


def test_the_transition_time_moves_only_with_the_status():
    """A new reason leaves the time; a flip, also one that is undone within the tick, moves it."""
    at = [after(NOW, seconds(number)) for number in range(5)]
    first = with_notes(None, [GOT_SCALE], at[0])
    second = with_notes(first, [GOT_SCALE, READY_FOR_NEW_SCALE], at[1])
    third = with_notes(second, [scale_unreadable("gone")], at[2])
    fourth = with_notes(third, [GOT_SCALE, rescale_failed("no")], at[3])
    moved = [one[0].last_transition_time for one in (first, second, third, fourth)]
    assert moved == [format_rfc3339(at[number]) for number in (0, 0, 2, 3)]
    assert with_notes(second, [GOT_SCALE, READY_FOR_NEW_SCALE], at[4]) is second


def test_the_window_of_the_flag_counts_in_whole_seconds_where_there_is_behavior():
    """An HPA with behavior has the flag's window in the API's unit; one without has it as it is."""
    fraction = Settings(downscale_stabilization=seconds(90.75))
    plain, by_rules = (
        read_spec(worlds.hpa(**spec), fraction) for spec in ({}, {"behavior": {"scaleUp": {}}})
    )
    assert plain.window == seconds(90.75)
    assert by_rules.down is not None
    assert by_rules.down.window == seconds(90)


def test_settings_that_cannot_work_are_refused():
    """No workers is an error that names the flag."""
    with pytest.raises(ValueError, match="concurrent-horizontal-pod-autoscaler-syncs must be greater than 0"):
        Settings(concurrent_syncs=0)
