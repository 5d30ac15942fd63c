"""Specs, targets and pods that make no sense: each says so in its own conditions, and the HPA beside it is scaled."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.facts.views import ContainerView
from kubetide.horizontal.reasons import reasons_of

NOW = worlds.NOW
GOOD, BAD = ("default", "good"), ("default", "web")


def verdicts_of(*, hpas, scales, pods=None, usage=None, values=()):
    """The HPAs given, and beside them one of two pods that use twice their target; by walk and in columns."""
    pods = [worlds.pod("a"), worlds.pod("b")] if pods is None else pods
    beside = [worlds.pod("x", app="good"), worlds.pod("y", app="good")]
    used = {("default", pod.name): 100 for pod in pods} if usage is None else usage
    found = []
    for columns_from in (0, 1 << 30):
        state = worlds.state_of(
            hpas=[*hpas, worlds.hpa("good")],
            pods=[*pods, *beside],
            scales=[*scales, worlds.scale("good", replicas=2)],
            usage={**used, ("default", "x"): 200, ("default", "y"): 200},
            values=values,
        )
        by_key = {one.key: one for one in decide(state, NOW, columns_from=columns_from).verdicts}
        assert by_key[GOOD].desired == 4
        found.append({key: (one.desired, one.rescale, one.notes, one.events) for key, one in by_key.items()})
    assert found[0] == found[1]
    return by_key


def of(verdict, kind):
    return next(note for note in reversed(verdict.notes) if note.type == kind)


def test_two_hpas_on_one_target():
    """Both are reported, in the same words, and neither scales."""
    other = worlds.hpa("twin")
    twin = worlds.scale("twin", replicas=2)
    found = verdicts_of(
        hpas=[worlds.hpa(), other], scales=[worlds.scale(replicas=2), _claiming(twin, "app=web")]
    )
    for key in (BAD, ("default", "twin")):
        active = of(found[key], "ScalingActive")
        assert (active.status, active.reason) == ("False", "AmbiguousSelector")
        assert active.message == (
            "pods by selector app=web are controlled by multiple HPAs: [default/twin default/web]"
        )
        assert [event.reason for event in found[key].events] == ["AmbiguousSelector"]
        assert not found[key].rescale


def test_selectors_overlap_only_by_pods_that_are_there():
    """A wider selector is a conflict once it matches a pod of the other HPA; before that it is none."""
    wide = _claiming(worlds.scale("wide", replicas=2), "app in (web, spare)")
    spare = worlds.pod("s", app="spare")
    scales = [worlds.scale(replicas=2), wide]
    found = verdicts_of(hpas=[worlds.hpa(), worlds.hpa("wide")], scales=scales, pods=[spare])
    assert of(found["default", "wide"], "ScalingActive").reason == "ValidMetricFound"
    found = verdicts_of(hpas=[worlds.hpa(), worlds.hpa("wide")], scales=scales, pods=[spare, worlds.pod("a")])
    assert of(found["default", "wide"], "ScalingActive").reason == "AmbiguousSelector"


def _claiming(scale, selector):
    return worlds.ScaleView(
        scale.namespace, scale.name, spec_replicas=2, status_replicas=2, selector=selector
    )


def test_an_unknown_type_of_metric():
    """A type that nobody knows is upstream's InvalidMetricSourceType."""
    [*_, bad] = _bad(metrics=[{"type": "Gauge"}])
    assert of(bad, "ScalingActive").reason == "InvalidMetricSourceType"
    assert 'unknown metric source type "Gauge"' in of(bad, "ScalingActive").message


@pytest.mark.parametrize("value", ["0", "-5", "1e30", "-1e30", "1e400", "1E", "9223372036854775808"])
def test_targets_that_make_no_sense(value):
    """Zero, negative and absurd targets give a number within the bounds, as upstream's do."""
    [*_, bad] = _bad(metrics=[worlds.average(value)])
    assert 1 <= bad.desired <= 100
    [*_, bad] = _bad(target=0)
    assert 1 <= bad.desired <= 100


@pytest.mark.parametrize("value", ["NaN", "0x10", "", "1e", "9" * (1 << 20)])
def test_targets_that_cannot_be_read(value):
    """The condition says which amount is none, and nothing is scaled."""
    [*_, bad] = _bad(metrics=[worlds.average(value)])
    active = of(bad, "ScalingActive")
    assert (active.status, bad.rescale) == ("False", False)
    assert "is not a quantity" in active.message
    assert len(active.message) < 1000


def test_a_container_without_a_request():
    """One container without a request spoils a utilization, and is named."""
    naked = worlds.pod(
        "a", containers=(ContainerView("app", {"cpu": 100}), ContainerView("log", {"memory": 1}))
    )
    found = verdicts_of(hpas=[worlds.hpa()], scales=[worlds.scale(replicas=2)], pods=[naked])
    text = of(found[BAD], "ScalingActive").message
    assert text.endswith("missing request for cpu in container log of Pod a")


def test_samples_of_pods_that_do_not_exist():
    """Samples of pods that nobody knows count for nothing, and absurd usage stays within the bounds."""
    usage = {("default", "ghost"): 10**9, ("elsewhere", "a"): 10**9, ("default", "a"): 100}
    found = verdicts_of(
        hpas=[worlds.hpa()], scales=[worlds.scale(replicas=1)], pods=[worlds.pod("a")], usage=usage
    )
    assert found[BAD].desired == 1
    usage = {("default", "a"): 1 << 53, ("default", "b"): 1 << 53}
    found = verdicts_of(hpas=[worlds.hpa()], scales=[worlds.scale(replicas=2)], usage=usage)
    assert 1 <= found[BAD].desired <= 100


def test_a_target_that_vanishes():
    """The scale's error is the condition."""
    lost = worlds.ScaleView("default", "web", error='deployments.apps "web" not found', error_stage="query")
    found = verdicts_of(hpas=[worlds.hpa()], scales=[lost])
    assert of(found[BAD], "AbleToScale").reason == "FailedGetScale"


def test_a_minimum_above_the_maximum():
    """Bounds that no number fulfils: nothing is scaled to and fro between them."""
    for replicas in (2, 4, 9):
        found = verdicts_of(hpas=[worlds.hpa(minimum=5, maximum=3)], scales=[worlds.scale(replicas=replicas)])
        active = of(found[BAD], "ScalingActive")
        assert (active.status, active.reason) == ("False", "InvalidBounds")
        assert active.message == (
            "minReplicas 5 is above maxReplicas 3: no number of replicas fulfils both; lower minReplicas or raise maxReplicas"
        )
        assert not found[BAD].rescale


def test_what_stops_an_hpa_before_its_metrics_has_its_own_reason():
    """Bounds and a missing selector say nothing of whose the pods are."""

    def told(scale, **spec):
        state = worlds.state_of(hpas=[worlds.hpa(**spec)], scales=[scale], pods=[], usage={})
        result = absorb(state, decide(state, NOW), [])
        return [
            (one.code, one.fields["error"]) for one in reasons_of(result.settlements[0], state.specs[BAD])
        ]

    scale = worlds.scale(replicas=2)
    [(code, error)] = told(scale, minimum=5, maximum=3)
    assert (code, error[:39]) == ("BoundsCrossed", "minReplicas 5 is above maxReplicas 3: n")
    missing = told(msgspec.structs.replace(scale, selector=""))
    assert missing == [("SelectorMissing", "the HPA target's scale is missing a selector")]


def _bad(**spec):
    found = verdicts_of(hpas=[worlds.hpa(**spec)], scales=[worlds.scale(replicas=2)])
    return [found[BAD]]
