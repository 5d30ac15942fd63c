"""The changes of `--set` and `--patch`, and their errors for unknown names."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import yaml
from tests.simulate.worlds import small

from kubetide.embedded.cloud import CATALOGUE
from kubetide.experiments.changes import with_changes
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.machines import catalogue_of, shipped_types
from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario


def changed(tmp_path, *sets, patches=()):
    return with_changes(tmp_path / "small.yaml", small(), sets=sets, patches=patches)


def objects(tmp_path, scenario):
    return {(kind.kind, json["metadata"]["name"]): json for kind, json in manifests_of(scenario, tmp_path)}


def test_nothing_changed_is_the_same_scenario(tmp_path):
    """Without changes the scenario comes back as it was."""
    assert changed(tmp_path) == small()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("expander=least-waste", lambda one: one.flags["expander"] == "least-waste"),
        ("--scale_down_unneeded_time=3m", lambda one: one.flags == {"scale-down-unneeded-time": "3m"}),
        ("scale-down-unneeded-time=", lambda one: one.flags == {}),
        ("scheduler=mostAllocated", lambda one: one.scheduler == "mostAllocated"),
        ("pods.ready=1s-2s", lambda one: one.pods.ready == "1s-2s"),
        ("group/general.max=9", lambda one: one.node_groups[0].max == 9),
        ("group/general.labels.tier=gold", lambda one: one.node_groups[0].labels == {"tier": "gold"}),
        (
            "type/m5.large.pricePerHour=0.05",
            lambda one: catalogue_of(one)["m5.large"] == replace(CATALOGUE["m5.large"], price_per_hour=0.05),
        ),
        ("service/web.load.multiplier=2.5", lambda one: one.services[0].load.multiplier == 2.5),
        ("service/web.sloLatency=80ms", lambda one: one.services[0].slo_latency == "80ms"),
    ],
)
def test_settings_of_the_scenario(tmp_path, text, read):
    """Flags, fields, groups and services are set by name; all else stays."""
    found = changed(tmp_path, text)
    assert read(found)
    assert found.manifests == small().manifests


@pytest.mark.parametrize("kind", ["hpa", "HPA", "horizontalpodautoscalers", "HorizontalPodAutoscaler"])
@pytest.mark.parametrize("name", ["web", "default/web"])
def test_fields_of_objects(tmp_path, kind, name):
    """An object is named as for kubectl; an HPA's target, min and max have short names."""
    found = objects(tmp_path, changed(tmp_path, f"{kind}/{name}.target=75", f"{kind}/{name}.max=20"))
    spec = found["HorizontalPodAutoscaler", "web"]["spec"]
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 75}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 20)


def test_entries_of_lists_are_named_or_numbered(tmp_path):
    """A container is `containers[main]` or `containers[0]`; an empty value takes a field away."""
    path = "deploy/web.spec.template.spec.containers[{}].resources.requests.{}"
    found = objects(
        tmp_path, changed(tmp_path, path.format("main", "cpu") + "=300m", path.format(0, "memory") + "=")
    )
    container = found["Deployment", "web"]["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"cpu": "300m"}


def test_patches_merge_add_and_delete(tmp_path):
    """A patch merges lists by their keys as kubectl does; a new object is added, and one can be taken away."""
    patch = tmp_path / "patch.yaml"
    documents = [
        {
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
        {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "$patch": "delete"},
    ]
    patch.write_text(yaml.safe_dump_all(documents))
    found = objects(tmp_path, changed(tmp_path, patches=[patch]))
    assert set(found) == {("Deployment", "web"), ("PodDisruptionBudget", "web")}
    container = found["Deployment", "web"]["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["resources"]["requests"]["cpu"]) == ("other", "200m")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("expandr=random", "did you mean `expander`?"),
        ("group/genral.max=2", "there is no group `genral`; did you mean `general`?"),
        ("type/m5.lorge.pods=2", "did you mean `m5.large`"),
        ("group/general=2", "name the field of group general to set"),
        ("group/general.mox=2", "unknown field `mox`; did you mean `max`?"),
        ("group/general.min=9", "nodeGroups[0] (general).min: min 9 is greater than max 4"),
        ("hpa/wib.max=3", "there is no HorizontalPodAutoscaler `wib`; did you mean `web`?"),
        ("hpa/kube-system/xxx.max=3", "`kube-system/xxx`; there are default/web"),
        ("hpa/xxx.max=3", "`xxx`; there are web"),
        (
            "hpa/web.max=1",
            "]: HorizontalPodAutoscaler web: spec.maxReplicas: Invalid value: 1: must be greater than",
        ),
        ("hpa/web.target.memory=3", "there are target.cpu"),
        ("hpa/web.spec.minReplica=3", "unknown field; did you mean minReplicas?"),
        ("hpa/web.maxReplicas=3", "maxReplicas: belongs in spec: write spec.maxReplicas"),
        ("sts/web.spec.replicas=3", "no object of kind `sts` is in the manifests"),
        ("deploy/web.spec.template.spec.containers[x].image=y", "has no entry [x]; there are main"),
        (
            "hpa/web.spec.behavior.scaleUp.policies[0].value=4",
            "spec.behavior.scaleUp.policies is not set, so it has no entry [0]; set the whole list",
        ),
        ("deploy/web.spec.replicas.deep=3", "which has no field"),
        ("scheduler=fast", "is no profile of the scheduler"),
        ("expander", "write it as NAME=VALUE"),
        ("duration={", "the value is not YAML"),
        ("deploy/web.spec..x=1", "is not a path"),
    ],
)
def test_wrong_changes_name_the_right_ones(tmp_path, text, reported):
    """The error suggests the intended name, or lists the existing ones."""
    with pytest.raises(ScenarioError) as failed:
        changed(tmp_path, text)
    assert reported in str(failed.value)
    assert str(failed.value).count("manifests[") <= 1


def test_wrong_patches_name_file_and_line(tmp_path):
    """A patch of nothing, without a name, and one that is no YAML."""
    patch = tmp_path / "patch.yaml"
    for text, reported in (
        ("kind: Deployment\n", "a patch names its object"),
        ("kind: Deployment\nmetadata: {name: cart}\n$patch: delete\n", "there is no Deployment default/cart"),
        ("a: [", "not valid YAML"),
    ):
        patch.write_text(text)
        with pytest.raises(ScenarioError, match=r"patch\.yaml line \d") as failed:
            changed(tmp_path, patches=[patch])
        assert reported in str(failed.value)
    with pytest.raises(ScenarioError, match="cannot be read"):
        changed(tmp_path, patches=[tmp_path / "none.yaml"])


def test_the_original_is_not_touched(tmp_path):
    """A change makes another scenario."""
    before = msgspec.json.encode(one := small())
    with_changes(tmp_path / "s.yaml", one, sets=["group/general.max=9", "hpa/web.max=9"], patches=[])
    assert msgspec.json.encode(one) == before


def test_shipped_types_as_a_scenario_writes_them_are_the_same_machines():
    """To change one field of a shipped type changes nothing else of it."""
    assert catalogue_of(msgspec.structs.replace(small(), instance_types=shipped_types())) == CATALOGUE


def test_another_catalogue_or_another_type_of_it(tmp_path):
    """What the scenario has from its catalogue is read anew; its own types stay, and so do changed ones."""
    head = "type,price_per_hour,cpu,memory\n"
    (tmp_path / "a.csv").write_text(head + "rack,0.4,8,32Gi\nlarge,0.8,16,64Gi\n")
    (tmp_path / "b.csv").write_text(head + "rack,4,8,32Gi\n")
    path = tmp_path / "racks.yaml"
    path.write_text(
        "name: racks\nloops: [nodes]\ncatalog: a.csv\nnodeGroups: [{name: racks, instanceType: rack, max: 3}]\n"
    )

    def price(*sets):
        found = with_changes(path, load_scenario(path), sets=sets, patches=())
        return catalogue_of(found)[found.node_groups[0].instance_type].price_per_hour

    assert price() == 0.4
    assert price("catalog=b.csv") == 4
    assert price("type/rack.pricePerHour=2", "catalog=b.csv") == 2
    assert price("group/racks.instanceType=large") == 0.8
    with pytest.raises(ScenarioError, match=r"catalog: .*c\.csv: cannot be read"):
        price("catalog=c.csv")
