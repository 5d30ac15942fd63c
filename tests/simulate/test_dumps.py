"""The output of ``kubectl get ... -o yaml`` of a cluster works as the manifests of a scenario."""

from __future__ import annotations

import msgspec
import pytest
import yaml
from tests.simulate.worlds import MANIFEST, small

from kubetide.objects.kinds import CLAIMS, JOBS, PERSISTENT_VOLUMES, PODS
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.notices import notices_of
from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario


def dumped(obj, uid, *, owner=None, **more):
    """An object as a server prints it."""
    meta = {
        "namespace": "default",
        "uid": uid,
        "resourceVersion": "48151",
        "generation": 3,
        "creationTimestamp": "2026-02-02T08:00:00Z",
        "managedFields": [{"manager": "kubectl", "operation": "Update"}],
        **obj["metadata"],
        **more,
    }
    if owner is not None:
        kind, name = owner
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u-9", "controller": True}
        ]
    return {**obj, "metadata": meta, "status": obj.get("status") or {"observedGeneration": 3}}


def listed(*objects):
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(objects)})


DEPLOYMENT, HPA = yaml.safe_load_all(MANIFEST)
TEMPLATE = DEPLOYMENT["spec"]["template"]
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web-1"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-1-a", "labels": {"app": "web"}},
    "spec": {**TEMPLATE["spec"], "nodeName": "ip-10-0-0-7"},
    "status": {"phase": "Running"},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ip-10-0-0-7", "namespace": None}}
WHOLE = listed(
    dumped(DEPLOYMENT, "u-1", annotations={"deployment.kubernetes.io/revision": "4"}),
    dumped(HPA, "u-2"),
    dumped(REPLICA_SET, "u-3", owner=("Deployment", "web")),
    dumped(POD, "u-4", owner=("ReplicaSet", "web-1")),
    dumped(NODE, "u-5"),
)


def test_a_dump_of_a_cluster_runs_as_what_was_written(tmp_path):
    """The figures are those of the manifests that the cluster was made from; a notice names what was left out."""
    written, reported = small(duration="5m"), []
    scenario = msgspec.structs.replace(written, manifests=("dump.yaml",))
    (tmp_path / "dump.yaml").write_text(WHOLE)
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(scenario)))
    result = run_simulation(
        load_scenario(path), base=tmp_path, out=tmp_path / "a", seed=1, warn=reported.append
    )
    [said] = reported
    assert said == (
        "manifests: 5 objects come from a cluster; left out is what its server added (status, uids ...), and what the "
        "run makes itself: 1 Node, 1 Pod, 1 ReplicaSet"
    )
    same = run_simulation(written, base=tmp_path, out=tmp_path / "b", seed=1, warn=pytest.fail)
    assert result.timeline.services == same.timeline.services


def test_objects_without_their_owner_are_named(tmp_path):
    """An object whose owner is not in the dump begins without it, and a notice says so; a pod gets a node anew."""
    text = listed(
        dumped(DEPLOYMENT, "u-1"), dumped(HPA, "u-2"), dumped(POD, "u-4", owner=("Rollout", "canary"))
    )
    reported = []
    found = manifests_of(msgspec.structs.replace(small(), manifests=(text,)), tmp_path, notices=reported)
    [pod] = [json for kind, json in found if kind is PODS]
    assert ("nodeName" in pod["spec"], "status" in pod, set(pod["metadata"])) == (
        False,
        False,
        {"name", "namespace", "labels"},
    )
    assert "Pod default/web-1-a: its owner Rollout canary is not among the objects" in reported[1]


def test_what_is_over_does_not_begin_again(tmp_path):
    """Jobs that have ended, pods that have run and objects that are being deleted are no part of a run."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {"job-name": "j", "app": "j"}},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-6"}},
            "template": {
                "metadata": {"labels": {"batch.kubernetes.io/controller-uid": "u-6", "app": "j"}},
                "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"},
            },
        },
    }
    complete = {
        **job,
        "metadata": {"name": "old"},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    text = listed(
        dumped(job, "u-6"),
        dumped(complete, "u-7"),
        dumped({**POD, "status": {"phase": "Succeeded"}}, "u-8"),
        dumped(REPLICA_SET, "u-9", deletionTimestamp="2026-02-02T09:00:00Z"),
    )
    found = manifests_of(msgspec.structs.replace(small(), manifests=(text,)), tmp_path)
    [(kind, left)] = found
    assert (kind, left["metadata"]["name"], left["metadata"]["labels"]) == (JOBS, "j", {"app": "j"})
    assert "selector" not in left["spec"]
    assert left["spec"]["template"]["metadata"]["labels"] == {"app": "j"}


def test_a_quota_keeps_its_status(tmp_path):
    """Nothing in a run counts what a namespace uses of its quota: what the dump says of it stays."""
    status = {"hard": {"pods": "9"}, "used": {"pods": "4"}}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": {"pods": "9"}},
        "status": status,
    }
    text = listed(dumped(quota, "u-1"))
    [(_, left)] = manifests_of(msgspec.structs.replace(small(), manifests=(text,)), tmp_path)
    assert (left["status"], left["metadata"].keys()) == (status, {"name", "namespace"})


@pytest.mark.parametrize("with_volume", [False, True])
def test_a_bound_claim_is_bound_again(tmp_path, with_volume):
    """A claim names its volume only where the dump has it, and a volume its claim without the old uid."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "pv-1",
        },
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-1", "namespace": None},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
            "claimRef": {"namespace": "default", "name": "data", "uid": "u-1"},
        },
    }
    objects = [dumped(claim, "u-1"), *([dumped(volume, "u-2")] if with_volume else [])]
    found = dict(manifests_of(msgspec.structs.replace(small(), manifests=(listed(*objects),)), tmp_path))
    assert ("volumeName" in found[CLAIMS]["spec"]) is with_volume
    if with_volume:
        assert found[PERSISTENT_VOLUMES]["spec"]["claimRef"] == {"namespace": "default", "name": "data"}


def test_a_refusal_names_file_and_line(tmp_path):
    """An object that the cluster refuses when it is created is named with its place."""
    (tmp_path / "pods.yaml").write_text(
        f"{MANIFEST}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n"
        "spec: {priorityClassName: none, containers: [{name: a, image: b}]}\n"
    )
    scenario = msgspec.structs.replace(small(), manifests=("pods.yaml",))
    with pytest.raises(ScenarioError) as caught:
        run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    line = MANIFEST.count("\n") + 2
    assert f"pods.yaml:{line}: Pod default/p:" in str(caught.value)


def test_a_dump_brings_no_notice_of_its_own(tmp_path):
    """Objects that are left out of a dump cause no other notices."""
    assert notices_of(manifests_of(msgspec.structs.replace(small(), manifests=(WHOLE,)), tmp_path)) == ()
