"""Slim pods say what the whole ones say, and those of one owner hold it once."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubetide.nodes.facts.slim_pods import PodSlimmer, slim_pod
from kubetide.nodes.facts.slimming import keep_node, slim_node
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.testing import builders

DRAWN = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.sampled_from(["uid-of-web", "uid-of-api", None]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["100m", "1"]),
        st.sampled_from([(), ("data",), ("data", "token"), ("token",)]),
        st.sampled_from(["Pending", "Running"]),
        st.sampled_from([None, {"cpu": "2"}]),
    ),
    max_size=8,
)


def made(number, owner="uid-of-web", label="a", cpu="1", volumes=("token",), phase="Running", resized=None):
    """A pod as an API server gives it."""
    body = builders.pod(f"p{number}", labels={"app": label})
    body["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": str(number), "annotations": {"x": "y"}}
    body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if owner is not None:
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
        ]
    names = {"data": "data", "token": f"kube-api-access-{number}"}
    kinds = {"data": {"emptyDir": {}}, "token": {"projected": {}}}
    mounts = [{"name": names[one]} for one in volumes]
    body["spec"] |= {
        "nodeName": f"n{number}",
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "containers": [
            {"name": "app", "resources": {"requests": {"cpu": cpu}}, "volumeMounts": mounts},
            {"name": "plain"},
        ],
        "volumes": [{"name": names[one], **kinds[one]} for one in volumes],
    }
    reported = (
        {"name": "app", "resources": {"requests": resized}} if resized else {"name": "app", "ready": True}
    )
    body["status"] = {
        "phase": phase,
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [reported],
    }
    return msgspec.convert({"apiVersion": "v1", "kind": "Pod", **body}, Pod)


@given(DRAWN)
def test_what_is_shared_changes_nothing(drawn):
    """Each pod comes out as by itself, whatever came before it; slim pods stay as they are."""
    slimmer, keeper = PodSlimmer(), PodSlimmer()
    for one in drawn:
        found = slimmer.slim(made(*one))
        assert found == slim_pod(made(*one))
        assert slim_pod(found) == found
        assert keeper.keep(made(*one)) == found


def test_pods_of_one_owner_have_only_their_names_and_places_for_themselves():
    slimmer = PodSlimmer()
    first, second = (slimmer.slim(made(number, volumes=("data", "token"))) for number in (1, 2))
    assert (second.metadata.name, second.metadata.uid, second.spec.node_name) == ("p2", "uid-2", "n2")
    assert second.metadata.labels is first.metadata.labels
    assert second.metadata.owner_references is first.metadata.owner_references
    assert second.spec.containers is first.spec.containers
    assert second.spec.volumes is first.spec.volumes
    assert second.status is first.status


@pytest.mark.parametrize("volumes", [(), ("token",), ("data", "token")])
def test_of_a_pod_that_is_dropped_its_parts_are_held_once_too(volumes):
    """A cache that holds no whole pods holds of most a name, a uid, and texts and parts of others."""
    slimmer = PodSlimmer()
    first, second = (slimmer.keep(made(number, volumes=volumes)) for number in (1, 2))
    for of in (
        lambda pod: pod.spec.containers,
        lambda pod: pod.spec.tolerations,
        lambda pod: pod.spec.volumes,
        lambda pod: pod.metadata.labels,
        lambda pod: pod.metadata.owner_references,
        lambda pod: pod.metadata.creation_timestamp,
        lambda pod: pod.status,
    ):
        assert of(first) is of(second)
    assert first.metadata.creation_timestamp is not None
    assert first.spec.node_name is slimmer.keep(made(1, owner=None)).spec.node_name
    other = slimmer.keep(made(3, owner="uid-of-other", volumes=volumes))
    assert next(iter(other.metadata.labels.values())) is next(iter(first.metadata.labels.values()))


def test_what_nodes_offer_is_held_once_where_it_is_written_alike():
    """Amounts that mean the same but read differently in a record stay apart."""

    def node(amount):
        body = {"metadata": {"name": "n", "labels": {"a": "b"}}, "status": {"allocatable": {"cpu": amount}}}
        return msgspec.json.decode(msgspec.json.encode(body), type=Node)

    amounts = [1, 1, 1.0, "1", "1", 1 << 70]
    slim = [slim_node(node(amount)) for amount in amounts]
    assert [msgspec.json.encode(one.status.allocatable) for one in slim] == [
        msgspec.json.encode({"cpu": amount}) for amount in amounts
    ]
    assert slim[0].status.allocatable is slim[1].status.allocatable
    assert slim[3].status.allocatable is slim[4].status.allocatable
    assert keep_node(node("2")) == slim_node(node("2"))


def test_the_volume_of_the_token_goes_and_others_stay():
    """Its name is the pod's own, and no rule looks into it; what is mounted from it goes with it."""
    pod = slim_pod(made(1, volumes=("data", "token")))
    assert [one.name for one in pod.spec.volumes] == ["data"]
    assert [one.name for one in pod.spec.containers[0].volume_mounts] == ["data"]
    bare = slim_pod(made(1, volumes=("token",)))
    assert bare.spec.volumes is None
    assert bare.spec.containers[0].volume_mounts is None


@pytest.mark.parametrize("resized", [None, {"cpu": "2"}])
def test_resources_that_a_kubelet_reports_remain(resized):
    found = slim_pod(made(1, resized=resized)).status.container_statuses
    assert (found is None) == (resized is None)
    if resized is not None:
        assert found[0].resources.requests == resized


def test_a_pod_that_changed_shares_with_the_newest():
    """The pods of a rollout begin as pending ones; what they share later is not what the first one had."""
    slimmer = PodSlimmer()
    pods = [made(1, phase="Pending", label="old"), made(2, label="new"), made(3, label="new")]
    *_, second, third = map(slimmer.slim, pods)
    assert third.metadata.labels is second.metadata.labels
    assert third.metadata == replace(second.metadata, name="p3", uid="uid-3")
