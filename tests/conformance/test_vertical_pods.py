"""The recorded cases of the VPA updater and admission controller, as part of the test suite."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from msgspec import convert
from tests.conformance import vertical, vertical_admission, vertical_updater
from tests.conformance.cases import Selection, selected_cases

from kubetide.objects.pod import Pod
from kubetide.vertical.updater.slimming import slim_pod

DATA = Path(__file__).parent / "data" / "vertical"
FILES = {
    "admission-random": 182,
    "admission-systematic": 235,
    "admission-vpa-validation": 125,
    "updater-random": 182,
    "updater-systematic": 368,
}

# Upstream's short codes and our reasons; not in the table are those that upstream gives twice, or for what it then
# does all the same.
REASONS = {
    "admission-status-error": "AdmissionStatusMissing",
    "admission-status-invalid": "AdmissionStatusInvalid",
    "below-min-replicas-no-evict": "BelowMinReplicas",
    "eviction-failed": "EvictionFailed",
    "eviction-rate-limited": "RateLimited",
    "eviction-requirements-not-met": "EvictionRequirementsNotMet",
    "in-range-and-diff-below-threshold": "InRangeAndSmallChange",
    "in-range-and-no-start-time": "InRangeAndNoStartTime",
    "in-range-and-young": "InRangeAndYoung",
    "inplace-deferred-no-group": "NoGroup",
    "inplace-deferred-no-recommendation": "NoRecommendation",
    "inplace-deferred-pending": "Pending",
    "inplace-deferred-resizing": "ResizeWaits",
    "inplace-gate-off": "InPlaceGateOff",
    "inplace-in-progress": "ResizeInProgress",
    "inplace-infeasible": "ResizeInfeasible",
    "inplace-infeasible-cached": "InfeasibleBefore",
    "inplace-kubelet-deferred": "ResizeDeferred",
    "inplace-kubelet-error": "ResizeError",
    "inplace-rate-limited": "RateLimited",
    "inplace-unknown-status": "ResizeUnknown",
    "no-vpa-to-process": "NoVpa",
    "queued": "Queued",
    "quick-oom": "QuickOom",
    "quick-oom-but-no-change": "QuickOomNoChange",
    "replica-info-unavailable": "ReplicasUnknown",
    "resize-failed": "ResizeFailed",
    "resize-failed-evict": "ResizeFailed",
    "too-few-replicas": "TooFewReplicas",
    "unboost-failed": "UnboostFailed",
    "vpa-no-selector": "VpaWithoutTarget",
}


def cases_of(name):
    return list(selected_cases(vertical, [DATA / f"{name}.json.gz"], Selection()))


@pytest.mark.parametrize("name", FILES)
def test_recorded_cases(name):
    """Every recorded loop and review comes out the same; where upstream dies, ours goes on."""
    cases = cases_of(name)
    assert len(cases) == FILES[name]
    found = {vertical.case_id(case): vertical.first_difference(case) for case in cases}
    assert {case: difference for case, difference in found.items() if difference} == {}


def test_a_changed_answer_is_found():
    """The comparison sees a single amount that differs, a missing action, and another event."""
    review = copy.deepcopy(
        next(one for one in cases_of("admission-systematic") if one["expect"].get("patch"))
    )
    review["expect"]["patch"][-1]["value"] = "501Mi"
    assert vertical_admission.first_difference(review).startswith("patch[")
    loop = copy.deepcopy(
        next(one for one in cases_of("updater-systematic") if one["expect"]["rounds"][0]["events"])
    )
    assert vertical_updater.first_difference(copy.deepcopy(loop)) is None
    changed = copy.deepcopy(loop)
    changed["expect"]["rounds"][0]["events"][0]["message"] += "!"
    assert "events" in vertical_updater.first_difference(changed)
    changed = copy.deepcopy(loop)
    del changed["expect"]["rounds"][0]["actions"][0]
    assert "actions" in vertical_updater.first_difference(changed)


def test_pods_that_upstream_dies_of_say_why_they_stay():
    """A start-up boost without CPU leaves the pod as it is; a LimitRange that upstream dies of holds."""
    dead = {
        case["id"]: vertical_admission.answer_of(case)
        for name in ("admission-systematic", "admission-random")
        for case in cases_of(name)
        if case["expect"].get("panic")
    }
    assert len(dead) == 5
    for name, answer in dead.items():
        assert answer.refusal is None
        if name.startswith("startup-boost"):
            assert (list(answer.patch), "has no cpu" in answer.problem) == ([], True)
        else:
            assert (answer.status, answer.problem) == ("applied", "")


@pytest.mark.parametrize("name", ["updater-random", "updater-systematic"])
def test_reasons_are_those_of_upstream(name):
    """Our reasons for each pod include upstream's, in the same loop."""
    lacking = []
    for case in cases_of(name):
        if case["expect"].get("panic"):
            continue
        player = vertical_updater.Player(case)
        for number, step in enumerate(case.get("rounds") or [{}]):
            player.round(step)
            said = {(reason.subject, reason.code) for reason in player.result.reasons}
            anywhere = {("*", code) for _, code in said}
            lacking += [
                (case["id"], number, subject, code)
                for subject, codes in case["expect"]["rounds"][number]["why"].items()
                for code in codes
                if code in REASONS and (subject, REASONS[code]) not in said | anywhere
            ]
    assert lacking == []


@pytest.mark.parametrize("name", ["updater-random", "updater-systematic"])
def test_slim_pods_are_updated_alike(name):
    """The updater decides from its slim pods as from whole pods."""
    found = {
        case["id"]: vertical_updater.first_difference(case, make_pod=lambda pod: slim_pod(convert(pod, Pod)))
        for case in cases_of(name)
    }
    assert {case: difference for case, difference in found.items() if difference} == {}
