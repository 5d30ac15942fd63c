"""A notice before the run, in its summary and in its figures says what of the manifests it leaves out."""

from __future__ import annotations

import msgspec
import pytest
import yaml
from tests.objects import samples
from tests.simulate.worlds import MANIFEST, small

from kubetide.simulate.outcome.table import summary_table
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.notices import notices_of, targets_missing
from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario
from kubetide.simulate.scenarios.unserved import unserved

VPA = """apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""
SELECTOR = {"matchLabels": {"app": "web"}}
TERM = {"labelSelector": SELECTOR, "topologyKey": "kubernetes.io/hostname"}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
HARD = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def with_pod_fields(**fields: object):
    """The small scenario, with more fields in the spec of its pods."""
    deployment, hpa = yaml.safe_load_all(MANIFEST)
    deployment["spec"]["template"]["spec"].update(fields)
    return msgspec.structs.replace(small(duration="2m"), manifests=(yaml.safe_dump_all([deployment, hpa]),))


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"affinity": {"podAntiAffinity": REQUIRED}}, None),
        ({"topologySpreadConstraints": [HARD]}, None),
        ({"volumes": [CLAIM]}, "data"),
    ],
)
def test_a_claim_that_nobody_makes_is_named(tmp_path, fields, word):
    """Pods that would wait for a claim for ever are a notice; a rule that is evaluated is none."""
    expected = f"Deployment default/web: its pods wait for the claim {word}, which is not among the objects"
    assert notices_of(manifests_of(with_pod_fields(**fields), tmp_path)) == ((expected,) if word else ())


def test_what_claims_for_devices_need_is_named(tmp_path):
    """A claim, a template or a class is not among the objects: pods would wait for it for ever."""
    claims = [
        {"name": "a", "resourceClaimTemplateName": "gpu"},
        {"name": "b", "resourceClaimTemplateName": "tpu"},
        {"name": "c", "resourceClaimName": "shared"},
    ]
    scenario = with_pod_fields(resourceClaims=claims)
    template = yaml.safe_dump(samples.resource_claim_template() | {"metadata": {"name": "gpu"}})
    scenario = msgspec.structs.replace(scenario, manifests=(*scenario.manifests, template))
    waits = "Deployment default/web: its pods wait for the {}, which is not among the objects"
    assert set(notices_of(manifests_of(scenario, tmp_path))) == {
        waits.format("ResourceClaimTemplate tpu"),
        waits.format("ResourceClaim shared"),
        "ResourceClaimTemplate default/gpu: its claims wait, as there is no DeviceClass gpu.test",
    }


def test_a_notice_is_reported_before_the_run_and_is_in_its_summary(tmp_path):
    """The same sentence is a warning, is stored with the figures and printed with the summary."""
    reported = []
    scenario = with_pod_fields(volumes=[CLAIM])
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=reported.append)
    assert len(reported) == 1
    assert result.summary.notices == result.timeline.notices
    assert result.summary.notices[:1] == tuple(reported)
    assert reported[0] in summary_table(result.summary).splitlines()


def test_hpas_that_cannot_scale_are_named(tmp_path):
    """A second HPA on the same target; whatever its metrics."""
    hpa = list(yaml.safe_load_all(MANIFEST))[1]
    second = {**hpa, "metadata": {"name": "again"}, "spec": {**hpa["spec"]}}
    second["spec"]["metrics"] = [
        {
            "type": "Pods",
            "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}},
        }
    ]
    both = msgspec.structs.replace(small(), manifests=(MANIFEST, yaml.safe_dump(second)))
    (twice,) = notices_of(manifests_of(both, tmp_path))
    assert "default/again: Deployment default/web is scaled by default/web as well" in twice


def test_an_hpa_without_its_target_is_an_error(tmp_path):
    """Its scaleTargetRef names an object of the manifests, or the scenario is refused."""
    scenario = small()
    text = MANIFEST.replace("kind: Deployment, name: web", "kind: Deployment, name: wbe")
    path = tmp_path / "scenario.yaml"
    value = msgspec.to_builtins(msgspec.structs.replace(scenario, manifests=(text,)))
    path.write_text(yaml.safe_dump(value))
    with pytest.raises(
        ScenarioError, match=r"default/web: spec.scaleTargetRef: no apps/v1 Deployment default/wbe"
    ):
        load_scenario(path)


def test_an_hpa_finds_its_target_in_any_version_of_its_group(tmp_path):
    """As upstream's controller, which asks the API server for the group and the kind."""
    older = MANIFEST.replace("{apiVersion: apps/v1, kind", "{apiVersion: apps/v1beta2, kind")
    elsewhere = MANIFEST.replace("{apiVersion: apps/v1, kind", "{apiVersion: extensions/v1beta1, kind")
    found = [
        list(targets_missing(manifests_of(msgspec.structs.replace(small(), manifests=(text,)), tmp_path)))
        for text in (MANIFEST, older, elsewhere)
    ]
    assert [len(one) for one in found] == [0, 0, 1]


def test_services_of_two_namespaces_have_their_own_figures(tmp_path):
    """A Deployment outside of the default namespace is shown with its namespace."""
    deployment = next(iter(yaml.safe_load_all(MANIFEST)))
    deployment["metadata"]["namespace"] = "shop"
    scenario = small(duration="2m")
    other = msgspec.structs.replace(scenario.services[0], namespace="shop")
    scenario = msgspec.structs.replace(
        scenario,
        manifests=(MANIFEST, yaml.safe_dump(deployment)),
        services=(*scenario.services, other),
    )
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    assert [series.name for series in result.timeline.services.values()] == ["web", "shop/web"]
    assert [len(series.ready) for series in result.timeline.services.values()] == [8, 8]
    assert result.summary.start == result.timeline.start - 15_000_000_000


def test_kinds_that_scale_nothing_are_passed_over(tmp_path):
    """Objects beside workloads are skipped, one sentence a kind, and make no error."""
    service = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}}
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "web"}}
    beside = yaml.safe_dump_all([service, {**service, "metadata": {"name": "other"}}, route])
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST, beside))
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(scenario)))
    load_scenario(path)
    skipped = []
    found = manifests_of(scenario, tmp_path, skipped=skipped)
    assert [kind.kind for kind, _ in found] == ["Deployment", "HorizontalPodAutoscaler"]
    assert [notice.split(";")[0] for notice in notices_of(found, skipped)] == [
        "Endpoints: 2 skipped",
        "HTTPRoute: 1 skipped",
    ]


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("v1", "ReplicationController", "ReplicationController is not supported yet"),
        (
            "v1",
            "LimitRange",
            "LimitRange is not supported yet; leave it out, and write the requests and limits",
        ),
        ("serving.knative.dev/v1", "Service", '"Service" is not known'),
    ],
)
def test_workloads_that_are_not_supported_are_errors(tmp_path, version, kind, words):
    """A workload whose pods would be missing stops the run; so does one whose name is like a skipped kind."""
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: db}}\n"
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST, text))
    with pytest.raises(ScenarioError, match=words):
        manifests_of(scenario, tmp_path)


CLAIMING = """
        volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
        containers: [{name: main, image: db}]
"""
STATEFUL = f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  template:
      metadata: {{labels: {{app: db}}}}
      spec: {CLAIMING}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: db}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: StatefulSet, name: db}}
  maxReplicas: 3
  metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 60}}}}}}]
"""
CRON = f"""
apiVersion: batch/v1
kind: CronJob
metadata: {{name: nightly}}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never {CLAIMING.replace("        ", "          ")}
"""


def test_stateful_sets_and_cron_jobs_are_looked_into(tmp_path):
    """An HPA may scale a StatefulSet, and the requests of its pods and of those of a CronJob are reported as well."""
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST, STATEFUL, CRON))
    found = manifests_of(scenario, tmp_path)
    assert list(targets_missing(found)) == []
    assert [notice.split(":")[0] for notice in notices_of(found)] == [
        "StatefulSet default/db",
        "CronJob default/nightly",
    ]


@pytest.mark.parametrize(
    ("loops", "kinds"),
    [
        (("nodes",), ["HorizontalPodAutoscaler", "VerticalPodAutoscaler"]),
        (("horizontal", "nodes"), ["VerticalPodAutoscaler"]),
        (("horizontal", "recommender"), []),
    ],
)
def test_objects_without_their_loop_have_no_effect(tmp_path, loops, kinds):
    """Two runs with and without a VPA are the same where no loop reads it, and that is no answer about the VPA."""
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST, VPA))
    notices = list(unserved(manifests_of(scenario, tmp_path), loops))
    assert [notice.partition(":")[0] for notice in notices] == kinds
    assert all("`vertical`" in notice for notice in notices if notice.startswith("Vertical"))


@pytest.mark.parametrize(
    ("loops", "added"),
    [
        (("horizontal", "schedules"), ["`scaledobjects`"]),
        (("horizontal", "scaledobjects"), ["`schedules`"]),
        (("horizontal", "scaledobjects", "schedules"), []),
    ],
)
def test_scaled_objects_need_the_loop_of_their_triggers(tmp_path, loops, added):
    """Cron triggers alone are a time table; beside cpu they are not."""
    texts = [
        yaml.safe_dump(
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": "-".join(types)},
                "spec": {
                    "scaleTargetRef": {"name": "web"},
                    "triggers": [{"type": one, "metadata": {}} for one in types],
                },
            }
        )
        for types in (("cron",), ("cron", "cpu"))
    ]
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST, *texts))
    notices = list(unserved(manifests_of(scenario, tmp_path), loops))
    assert [notice.rpartition("add ")[2].removesuffix(" to `loops`") for notice in notices] == added


def test_custom_objects_are_left_to_their_controller(tmp_path):
    """A notice says that the run does not act on a custom kind; its scale still makes it a target."""
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions: [{name: v1, served: true, storage: true, subresources: {scale: {}}}]
"""
    tab = "apiVersion: example.com/v1\nkind: CronTab\nmetadata: {name: web}\n"
    hpa = MANIFEST.partition("---")[2].replace("apps/v1, kind: Deployment", "example.com/v1, kind: CronTab")
    scenario = msgspec.structs.replace(small(), manifests=(definition, f"{tab}---{hpa}"))
    found = manifests_of(scenario, tmp_path)
    assert list(targets_missing(found)) == []
    [notice] = notices_of(found)
    assert notice.startswith("CronTab: 1 of a custom kind; nothing here acts on it but a controller of yours")
