"""Values of objects and of external metrics: sums, ratios and shares."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.metrics.identifiers import printed
from kubetide.horizontal.metrics.registry import propose, read_metric
from kubetide.horizontal.metrics.types import MetricFailure, Proposal, Reading, Tolerance
from kubetide.horizontal.rules.shares import (
    INT64_MAX,
    proposal_by_share,
    proposal_by_value,
    sum_of_shares,
    sum_of_values,
)
from kubetide.objects.hpa import MetricSpec
from kubetide.objects.meta import LabelSelector

TOLERANCE = Tolerance(up=0.1, down=0.1)
SERIES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=8)


def reading(*series, pods=4, ready=4, replicas=4):
    return Reading(series, pods, ready, replicas)


def metric_of(spec):
    return read_metric(msgspec.convert(spec, MetricSpec), "default", 36)


@given(SERIES)
def test_sums_are_plain_while_they_fit(series):
    """Both kinds of sum are the sum."""
    assert sum_of_values(series) == sum_of_shares(series) == sum(series)


@pytest.mark.parametrize(
    ("series", "in_all", "shared"),
    [
        ([INT64_MAX, 1], INT64_MAX, INT64_MAX),
        ([-5, 3], -2, INT64_MAX),
        ([7, -5], 2, 2),
        ([-INT64_MAX - 1, -1], INT64_MAX, INT64_MAX),
    ],
)
def test_sums_that_do_not_fit(series, in_all, shared):
    """In all only two positive numbers overflow; for shares every sum below zero on the way counts as one."""
    assert (sum_of_values(series), sum_of_shares(series)) == (in_all, shared)


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 20), st.integers(1, 500))
def test_a_share_is_rounded_up_or_left_alone(value, target, replicas):
    """Within tolerance the replicas that are there stay; else each gets at most its target."""
    found = proposal_by_share(value, reading(replicas=replicas), target, TOLERANCE, saturating=True)
    if TOLERANCE.holds(found.ratio):
        assert found.replicas == replicas
    else:
        assert found.replicas == min(ceil(Fraction(value, target)), (1 << 31) - 1)
    assert found.average == ceil(Fraction(value, replicas))


@pytest.mark.parametrize(("current", "replicas"), [(3, (1 << 31) - 1), (0, -(1 << 31))])
def test_from_zero_a_number_that_does_not_fit_is_none(current, replicas):
    """Upstream takes the largest number only for the replicas that there are; from zero another metric may win."""
    assert proposal_by_value(1 << 60, reading(), current, 1, TOLERANCE).replicas == replicas


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30), st.integers(1, 1 << 20), st.integers(1, 50))
def test_more_load_never_needs_fewer_replicas(one, other, target, ready):
    """The larger of two values outside of the tolerance gives at least as many replicas."""
    low, high = sorted((one, other))
    found = [
        proposal_by_value(value, reading(ready=ready), ready, target, TOLERANCE) for value in (low, high)
    ]
    if not any(TOLERANCE.holds(one.ratio) for one in found):
        assert found[0].replicas <= found[1].replicas


def test_numbers_that_do_not_fit():
    """External replicas stop at the largest int32, an object's shares become the smallest."""
    largest = proposal_by_share(INT64_MAX, reading(), 1, TOLERANCE, saturating=True)
    assert (largest.replicas, largest.average) == ((1 << 31) - 1, INT64_MAX)
    of_object = proposal_by_share(INT64_MAX, reading(), 1, TOLERANCE, saturating=False)
    assert (of_object.replicas, of_object.average) == (-(1 << 31), 1 << 61)
    nobody = proposal_by_share(5000, reading(replicas=0), 1000, TOLERANCE, saturating=True)
    assert (nobody.replicas, nobody.average) == (5, -INT64_MAX - 1)


def test_pods_are_only_counted_where_they_play_a_part():
    """Without pods a value within its tolerance still holds; outside of it the ready ones are missed."""
    metric = metric_of(worlds.external({"value": "10"}))
    assert propose(metric, reading(10_500, pods=0, ready=0), 3, TOLERANCE).replicas == 3
    failed = propose(metric, reading(20_000, pods=0, ready=0), 3, TOLERANCE)
    assert failed == MetricFailure(
        "FailedGetExternalMetric",
        "unable to calculate ready pods: no pods returned by selector while calculating replica count",
        "failed to get queue external metric value: failed to get external metric queue: ",
    )
    assert propose(metric, reading(25_000, pods=0, ready=0), 0, TOLERANCE).replicas == 3


def test_no_series_is_not_nothing():
    """An answer without a series is a failure, not a sum of 0 that scales down."""
    found = propose(metric_of(worlds.external({"averageValue": "10"})), reading(), 3, TOLERANCE)
    assert isinstance(found, MetricFailure)
    assert found.text.endswith("queue/nil: no metrics returned from external metrics API")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (worlds.external({}), "neither a value target nor an average value target was set"),
        (worlds.of_object({}), "neither a value target nor an average value target was set"),
        (worlds.external({"value": "x"}), 'target.value of queue: "x" is not a quantity'),
        (worlds.of_pods("1x"), 'target.averageValue of rps: "1x" is not a quantity'),
        (
            worlds.external({"value": "1"}, selector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            '"Is" is not a valid label selector operator',
        ),
    ],
)
def test_a_spec_that_cannot_be_read_says_so(spec, text):
    """Nobody is asked, and the metric fails with what is wrong in it."""
    metric = metric_of(spec)
    assert metric.question("app=web") is None
    found = propose(metric, "", 3, TOLERANCE)
    assert isinstance(found, MetricFailure)
    assert text in found.text


@pytest.mark.parametrize(
    ("value", "average"),
    [(INT64_MAX, INT64_MAX), (INT64_MAX - 511, INT64_MAX), (INT64_MAX - 512, 4611686018427387392)],
)
def test_what_is_the_largest_number_as_a_double_is_not_divided(value, average):
    """Of external metrics the status shows a sum that comes to 2^63 as a double as the largest number."""
    found = proposal_by_share(value, reading(value, replicas=2), 1000, TOLERANCE, saturating=True)
    assert found.average == average


def test_of_two_targets_of_an_object_the_type_says_which():
    """The target's type decides; for other metrics the average does."""
    goal = {"type": "Value", "value": "10", "averageValue": "1"}
    spec = worlds.of_object({})
    spec["object"]["target"] = goal
    found = propose(metric_of(spec), reading(20_000), 4, TOLERANCE)
    assert isinstance(found, Proposal)
    assert (found.replicas, found.name) == (8, "Ingress metric hits")
    external = metric_of(worlds.external({"value": "10", "averageValue": "1"}))
    assert propose(external, reading(20_000), 4, TOLERANCE).replicas == 20


def test_selectors_print_as_upstream_prints_them():
    """Labels are ordered by key, terms and values stay in the order of the spec; no selector is nil."""
    term = {"key": "z", "operator": "In", "values": ["b", "a"]}
    selector = msgspec.convert(
        {"matchLabels": {"d": "1", "c": "2"}, "matchExpressions": [term]}, LabelSelector
    )
    assert printed(selector) == (
        "&LabelSelector{MatchLabels:map[string]string{c: 2,d: 1,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:z,Operator:In,Values:[b a],},},}"
    )
    assert printed(None) == "nil"
