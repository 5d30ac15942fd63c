"""Existing autoscalers into ElasticWorkloads and back: nothing is lost, and what cannot be said is refused by name."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kubetide.cli.main import cli
from kubetide.elastic.convert.backward import from_elastic
from kubetide.elastic.convert.forward import to_elastic
from kubetide.elastic.convert.tables import FORMS
from kubetide.embedded.apiserver.manifests.manifest import load_manifests

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
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


def hpa(name="web", target="web", **meta):
    spec = {"scaleTargetRef": {**DEPLOYMENT, "name": target}, "maxReplicas": 9}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, **meta},
        "spec": spec,
    }


def table(kind, **spec):
    group = {
        "HorizontalPodCronscaler": "autoscaling.cloud.tencent.com/v1",
        "CronHorizontalPodAutoscaler": "autoscaling.alibabacloud.com/v1beta1",
        "CronHPA": "extensions.tkestack.io/v1",
    }
    return {"apiVersion": group[kind], "kind": kind, "metadata": {"name": "hours"}, "spec": spec}


WEB = {**DEPLOYMENT, "name": "web"}
OF_HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web"}


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        (
            [hpa(ownerReferences=[{"kind": "ScaledObject", "name": "q"}])],
            "HorizontalPodAutoscaler web: belongs to ScaledObject q",
        ),
        ([hpa(finalizers=["x/y"])], "metadata.finalizers cannot be kept"),
        ([hpa(), hpa("second")], "HorizontalPodAutoscaler web has the same target"),
        ([table("HorizontalPodCronscaler", scaleTarget=OF_HPA, crons=[])], "which is not among the objects"),
        (
            [
                hpa(),
                table(
                    "HorizontalPodCronscaler",
                    scaleTarget=WEB,
                    crons=[{"name": "x", "schedule": "0 0 8 * * *", "targetSize": 3}],
                ),
            ],
            "sets the size of what HorizontalPodAutoscaler web scales too",
        ),
        (
            [hpa(), table("CronHorizontalPodAutoscaler", scaleTargetRef=OF_HPA, jobs=[])],
            "has sizes, not bounds",
        ),
        (
            [
                table(
                    "CronHorizontalPodAutoscaler",
                    scaleTargetRef=WEB,
                    jobs=[{"name": "x", "schedule": "0 0 8 * * *", "targetSize": 3, "runOnce": True}],
                )
            ],
            "jobs[0]: runOnce has no counterpart",
        ),
        *(
            (
                [
                    table(
                        "CronHorizontalPodAutoscaler",
                        scaleTargetRef=WEB,
                        jobs=[{"name": "x", "schedule": schedule, "targetSize": 3}],
                        excludeDates=["* * * 1 1 *", dates],
                    )
                ],
                words,
            )
            for schedule, dates, words in (
                ("0 8 * * *", "@daily", "jobs[0]: schedule '0 8 * * *': write six fields"),
                ("0 ? 8 * * *", "@daily", "jobs[0]: schedule '0 ? 8 * * *': ? stands for days only; write *"),
                ("0 0 8 ? * *", "* * 15 6 *", "excludeDates '* * 15 6 *': write six fields"),
                ("@daily", "* * * 1 ? *", "excludeDates '* * * 1 ? *': ? stands for days only; write *"),
            )
        ),
        *(
            (
                [
                    table(
                        "HorizontalPodCronscaler",
                        scaleTarget=WEB,
                        crons=[{"name": "x", "schedule": at, "targetSize": 3, "excludeDates": [dates]}],
                    )
                ],
                words,
            )
            for at, dates, words in (
                ("0 8 * * *", "* * * 1 1 *", "crons[0]: schedule '0 8 * * *': write six fields"),
                ("@daily", "* * * 1 1 *", "crons[0]: schedule '@daily': write six fields"),
                ("0 0 8 * * *", "* * 1 1 *", "crons[0]: excludeDates '* * 1 1 *': write six fields"),
            )
        ),
        (
            [table("CronHPA", scaleTargetRef=WEB, crons=[{"schedule": "@every 1h", "targetReplicas": 3}])],
            "crons[0]: @every counts from",
        ),
        (
            [
                {
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ScaledObject",
                    "metadata": {"name": "q"},
                    "spec": {"scaleTargetRef": {"name": "web"}},
                }
            ],
            "ScaledObject q: cooldownPeriod",
        ),
        (
            [{**hpa(), "spec": {"scaleTargetRef": WEB, "maxReplicas": 1, "minReplicas": 3}}],
            "spec.horizontal.maxReplicas: Invalid value: 1",
        ),
    ],
)
def test_what_an_elastic_workload_cannot_say_is_refused(objects, words):
    """The object and the field are named, and its target is not converted by half."""
    found = to_elastic(objects)
    [refusal] = found.refused
    assert words in refusal
    assert not found.objects


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"timeZone": "Europe/Berlin", "rules": []}, "schedule.timeZone: a time table has none"),
        (
            {"rules": [{"name": "x", "start": "0 8 * * *", "end": "0 9 * * *", "replicas": 3}]},
            "rule x: has an end",
        ),
        (
            {"rules": [{"name": "x", "at": "0 8 * * *", "timeZone": "Europe/Paris", "replicas": 3}]},
            "timeZone Europe/Paris",
        ),
        ({"rules": [{"name": "x", "at": "@daily", "replicas": 3}]}, "has no @daily"),
        (
            {"rules": [{"name": "x", "at": "0 8 * * *", "replicas": 3, "excludeDates": ["@weekly"]}]},
            "rule x: excludeDates '@weekly': HorizontalPodCronscaler has no @weekly",
        ),
        ({"rules": [{"name": "x", "at": "0 8 * * *", "minReplicas": 3}]}, "without a horizontal section"),
    ],
)
def test_what_a_time_table_cannot_say_is_refused(schedule, words):
    """On the way back, too."""
    found = from_elastic(
        [
            {
                "apiVersion": "kubetide.dev/v1alpha1",
                "kind": "ElasticWorkload",
                "metadata": {"name": "web"},
                "spec": {"targetRef": WEB, "schedule": schedule},
            }
        ]
    )
    assert words in found.refused[0]
    assert not found.objects


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


def run(*args, text=""):
    return CliRunner().invoke(cli, ["convert", *args], input=text)


def test_the_command_reads_a_dump_and_writes_what_it_can_read():
    """As ``kubectl get -o yaml`` prints it: server fields go, other kinds are passed over, the output is read again."""
    dumped = {
        **hpa(uid="1", resourceVersion="7", labels={"on": "off", "v": "1e3"}),
        "status": {"currentReplicas": 2},
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [dumped, service]})
    there = run("-", text=text)
    assert there.exit_code == 0, there.output
    [(_, made)] = load_manifests(there.output, "out")
    assert made["metadata"]["labels"] == {"on": "off", "v": "1e3"}
    back = run("--back", "-", "-o", "json", text=there.output)
    assert json.loads(back.output)["items"] == [hpa(labels={"on": "off", "v": "1e3"})]


def test_the_command_says_what_it_cannot_convert(tmp_path):
    """Objects that can be converted are printed, the others are named on standard error, and the exit status is 1."""
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([hpa(), hpa("other", "db", finalizers=["x/y"])]))
    found = run(str(path))
    assert found.exit_code == 1
    assert "kind: ElasticWorkload" in found.stdout
    assert (
        found.stderr == "not converted: HorizontalPodAutoscaler other: metadata.finalizers cannot be kept\n"
    )
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}))
    assert "there is no HPA, VPA or time table among the 1 objects" in run(str(path)).stderr


REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (None, "spec.targetRef.kind: is missing"),
        ({"targetRef": REF, "schedule": {"rules": None}}, "spec.schedule.rules: is missing"),
        ({"targetRef": REF, "schedule": {"rules": [{"at": "@daily"}]}}, "rules[0].name: is missing"),
        ({"targetRef": REF, "schedule": {"rules": [{"name": "a"}]}}, "rules[0].at: write either at"),
    ],
)
def test_an_elastic_workload_that_lacks_fields_is_refused_by_name(spec, words):
    """Fields that a server would ask for are named, and other objects are converted."""
    body = {"apiVersion": "kubetide.dev/v1alpha1", "kind": "ElasticWorkload", "metadata": {"name": "a"}}
    found = from_elastic([{**body, "spec": spec}])
    assert not found.objects
    assert words in found.refused[0]


def test_a_time_table_without_a_spec_is_refused_by_name():
    """It names no target."""
    body = {"apiVersion": "autoscaling.cloud.tencent.com/v1", "kind": "HorizontalPodCronscaler"}
    found = to_elastic([{**body, "metadata": {"name": "a"}}])
    assert "spec.targetRef.kind: is missing" in found.refused[0]
