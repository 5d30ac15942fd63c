"""Existing autoscalers into ElasticWorkloads and back: nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.elastic.convertible import DEPLOYMENT, hpa

from kubetide.elastic.convert.backward import from_elastic
from kubetide.elastic.convert.forward import to_elastic
from kubetide.elastic.convert.tables import FORMS

NAMES = st.sampled_from(["web", "web-2", "on", "1e3", "other"])
WORDS = st.sampled_from(["yes", "no", "1e3", "0x1f", "12:30", "a b", "", "null", "ünï", "- x", "#", "0"])
SIZES = st.integers(0, 50)
SIX = st.sampled_from(["0 30 8 * * 1-5", "0 0 22 * * *", "*/30 0 6 1 * ?", "5 4 3 2 1 0"])
FIVE = st.sampled_from(["30 8 * * 1-5", "@daily", "0 22 * * *"])
DATES = st.lists(st.sampled_from(["* * * 1-7 10 *", "* * * 25 12 *"]), min_size=1, max_size=2)


def metadata(name):
    maps = st.fixed_dictionaries({"app": WORDS}, optional={"team": WORDS, "note": WORDS})
    optional = {"labels": maps, "annotations": maps}
    return st.fixed_dictionaries({"name": name, "namespace": st.just("shop")}, optional=optional)


def obj(api_version, kind, name, spec):
    fields = {
        "apiVersion": st.just(api_version),
        "kind": st.just(kind),
        "metadata": metadata(name),
        "spec": spec,
    }
    return st.fixed_dictionaries(fields)


def lists_by_name(rule):
    """Of two rules of one name nobody knows which is followed."""
    return st.lists(rule, min_size=1, max_size=3, unique_by=lambda one: one["name"])


def reference(name="web"):
    return st.just({**DEPLOYMENT, "name": name})


METRICS = st.lists(
    st.integers(1, 99).map(
        lambda share: {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}},
        }
    ),
    min_size=1,
    max_size=2,
)
HORIZONTAL = {"maxReplicas": st.integers(20, 90)}
HORIZONTAL_OPTIONAL = {
    "minReplicas": st.integers(1, 20),
    "metrics": METRICS,
    "behavior": st.just({"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "0.05"}}),
}
VERTICAL_OPTIONAL = {
    "updatePolicy": st.just({"updateMode": "Off", "minReplicas": 2}),
    "resourcePolicy": st.just({"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "1e3"}}]}),
    "recommenders": st.just([{"name": "mine"}]),
}
HPA = obj(
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    NAMES,
    st.fixed_dictionaries({"scaleTargetRef": reference(), **HORIZONTAL}, optional=HORIZONTAL_OPTIONAL),
)
VPA = obj(
    "autoscaling.k8s.io/v1",
    "VerticalPodAutoscaler",
    NAMES,
    st.fixed_dictionaries(
        {
            "targetRef": st.sampled_from(
                [
                    {**DEPLOYMENT, "name": "web"},
                    {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web"},
                ]
            )
        },
        optional=VERTICAL_OPTIONAL,
    ),
)


def hpc(target, cron):
    spec = st.fixed_dictionaries({"scaleTarget": target, "crons": lists_by_name(cron)})
    return obj("autoscaling.cloud.tencent.com/v1", "HorizontalPodCronscaler", NAMES, spec)


def cron(**sizes):
    return st.fixed_dictionaries({"name": NAMES, "schedule": SIX, **sizes}, optional={"excludeDates": DATES})


SIZED = hpc(reference(), cron(targetSize=SIZES))
CRON_HPA = obj(
    "extensions.tkestack.io/v1",
    "CronHPA",
    NAMES,
    st.fixed_dictionaries(
        {
            "scaleTargetRef": reference(),
            "crons": st.lists(
                st.fixed_dictionaries({"schedule": FIVE, "targetReplicas": SIZES}), min_size=1, max_size=3
            ),
        }
    ),
)
ALIBABA = obj(
    "autoscaling.alibabacloud.com/v1beta1",
    "CronHorizontalPodAutoscaler",
    NAMES,
    st.fixed_dictionaries(
        {
            "scaleTargetRef": reference(),
            "jobs": lists_by_name(
                st.fixed_dictionaries(
                    {
                        "name": NAMES,
                        "schedule": st.one_of(SIX, st.just("@date 2026-11-11 00:00:00")),
                        "targetSize": SIZES,
                    }
                )
            ),
        },
        optional={"excludeDates": DATES},
    ),
)


@st.composite
def autoscalers(draw):
    """Draw what scales one target: an HPA with or without a table of it, or a table of the target; a VPA or not."""
    found = [draw(VPA)] if draw(st.booleans()) else []
    if draw(st.booleans()):
        hpa = draw(HPA)
        found.append(hpa)
        if draw(st.booleans()):
            bounds = st.sampled_from(
                [{"minSize": 3}, {"maxSize": 9}, {"minSize": 3, "maxSize": 9}, {"minSize": 4, "maxSize": 4}]
            )
            own = {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "name": hpa["metadata"]["name"],
            }
            target = st.sampled_from(
                [own, {**own, "namespace": "shop"}, {**own, "apiVersion": "autoscaling/v1"}]
            )
            plain = st.tuples(cron(), bounds).map(lambda pair: {**pair[0], **pair[1]})
            found.append(draw(hpc(target, plain)))
    else:
        found.append(draw(st.one_of(SIZED, CRON_HPA, ALIBABA)))
    return found


def by_kind(objects):
    return sorted(objects, key=lambda one: one["kind"])


@given(autoscalers())
def test_there_and_back_is_the_same(objects):
    """HPA, VPA and time table come back as they were: names, labels, annotations, references, specs; also through YAML."""
    there = to_elastic(objects)
    assert there.refused == []
    [made] = there.objects
    back = from_elastic([made])
    assert back.refused == []
    assert by_kind(back.objects) == by_kind(objects)


RULE = st.one_of(
    st.fixed_dictionaries({"name": NAMES, "at": SIX, "replicas": SIZES}, optional={"excludeDates": DATES}),
    st.fixed_dictionaries({"name": NAMES, "at": SIX, "minReplicas": SIZES}),
    st.fixed_dictionaries({"name": NAMES, "at": SIX, "maxReplicas": SIZES}),
)
ELASTIC = obj(
    "kubetide.dev/v1alpha1",
    "ElasticWorkload",
    NAMES,
    st.fixed_dictionaries(
        {
            "targetRef": reference(),
            "horizontal": st.fixed_dictionaries(HORIZONTAL, optional=HORIZONTAL_OPTIONAL),
        },
        optional={
            "vertical": st.fixed_dictionaries({}, optional=VERTICAL_OPTIONAL),
            "schedule": st.fixed_dictionaries({"rules": lists_by_name(RULE)}),
            "forecast": st.fixed_dictionaries(
                {"mode": st.sampled_from(["calendar", "strict", "none"])},
                optional={"timeZone": st.just("Europe/Berlin")},
            ),
        },
    ),
)


@given(ELASTIC)
def test_back_and_there_is_the_same(workload):
    """The spec of an ElasticWorkload survives the way over an HPA, a VPA and a HorizontalPodCronscaler."""
    back = from_elastic([workload])
    assert back.refused == []
    [again] = to_elastic(back.objects).objects
    assert again["spec"] == workload["spec"]
    assert again["metadata"]["name"] == workload["metadata"]["name"]
    assert again["metadata"].get("labels") == workload["metadata"].get("labels")


@pytest.mark.parametrize("kind", ["HorizontalPodCronscaler", "CronHorizontalPodAutoscaler"])
def test_dates_get_the_seconds_that_the_other_kind_reads_first(kind):
    """Five fields name 15 June; without a field for seconds at the front they would name the 6th of each month."""
    rule = {"name": "x", "at": "0 8 * * *", "replicas": 3, "excludeDates": ["* * 15 6 *", "* * * 1 1 *"]}
    [entry] = (written := FORMS[kind].write([rule], False)).get("crons") or written["jobs"]
    assert entry["schedule"] == "0 0 8 * * *"
    assert (entry.get("excludeDates") or written["excludeDates"]) == ["0 * * 15 6 *", "* * * 1 1 *"]


def test_edits_in_between_survive():
    """A label that was added, changed or removed on the ElasticWorkload is so on the objects that come back."""
    first = hpa(labels={"app": "web", "old": "x"}, annotations={"note": "a"})
    [made] = to_elastic([first]).objects
    made["metadata"]["labels"] = {"app": "shop", "new": "y"}
    [back] = from_elastic([made]).objects
    assert back["metadata"]["labels"] == {"app": "shop", "new": "y"}
    assert back["metadata"]["annotations"] == {"note": "a"}


def test_two_targets_of_one_name_get_two_names():
    """An HPA and a VPA of one name for different targets become two objects of different names."""
    vpa = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"targetRef": {**DEPLOYMENT, "name": "db"}},
    }
    names = [one["metadata"]["name"] for one in to_elastic([vpa, hpa()]).objects]
    assert names == ["web", "db"]
