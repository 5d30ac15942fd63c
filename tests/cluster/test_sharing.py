"""Pods of one owner share what they have in common, and say what they said before."""

from __future__ import annotations

import copy

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubetide.cluster.decoding import decode_event, decode_list
from kubetide.horizontal.facts.views import view_of_pod
from kubetide.objects.kinds import PODS
from kubetide.objects.pod import Pod
from kubetide.objects.sharing import shared
from kubetide.testing import builders

OWNERS = ("uid-of-web", "uid-of-api", None)


def body(drawn):
    """A pod; what is drawn says which of several values each part has."""
    number, owner, label, cpu, toleration, image, ready = drawn
    pod = builders.pod(f"p{number}", labels={"app": label})
    pod["spec"]["nodeName"] = f"n{number}"
    pod["metadata"]["annotations"] = {"checksum": label}
    if owner is not None:
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
        ]
    pod["spec"]["containers"] = [
        {"name": "app", "image": image, "resources": {"requests": {"cpu": cpu}}},
        {"name": "proxy", "image": "p:1", "volumeMounts": [{"name": f"token-{number}"}]},
    ]
    pod["spec"]["tolerations"] = [{"key": toleration, "operator": "Exists"}]
    when = f"2026-01-01T00:00:{number:02d}Z"
    pod["status"] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": when}],
        "containerStatuses": [{"name": "app", "ready": ready == "True", "restartCount": 0}],
    }
    return pod


drawn_pods = st.lists(
    st.tuples(
        st.integers(0, 59),
        st.sampled_from(OWNERS),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["100m", "1"]),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["i:1", "i:2"]),
        st.sampled_from(["True", "False"]),
    ),
    max_size=8,
)


def read(pod):
    line = msgspec.json.encode({"type": "ADDED", "object": {"apiVersion": "v1", "kind": "Pod", **pod}})
    return shared(decode_event(line, PODS)[0].object)


@given(drawn_pods)
def test_a_pod_says_what_it_said(drawn):
    bodies = [body(one) for one in drawn]
    found = [read(one) for one in bodies]
    plain = [
        msgspec.convert({"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(one)}, Pod, strict=False)
        for one in bodies
    ]
    assert found == plain


def test_what_is_equal_is_one_object():
    first = read(body((1, "uid-of-one", "a", "1", "x", "i:1", "True")))
    second = read(body((2, "uid-of-one", "a", "1", "x", "i:2", "False")))
    assert second.spec.tolerations is first.spec.tolerations
    assert second.metadata.labels is first.metadata.labels
    assert second.metadata.annotations is first.metadata.annotations
    one, other = second.spec.containers[0], first.spec.containers[0]
    assert one.resources is other.resources
    assert (one.image, other.image) == ("i:2", "i:1")
    assert second.spec.containers[1].image is first.spec.containers[1].image
    assert second.spec.containers[1].volume_mounts != first.spec.containers[1].volume_mounts
    assert second.status.conditions[0].type is first.status.conditions[0].type
    assert second.status.conditions[0].status == "False"


def test_times_types_and_what_a_template_says_are_held_once():
    """Pods that start in the same second hold one text of it, each pod's api version and kind are those of all."""
    first, second = (read(timed(number)) for number in (1, 2))
    for one, other in (
        (first.metadata.creation_timestamp, second.status.start_time),
        (first.status.start_time, second.status.conditions[0].last_transition_time),
        (first.api_version, second.api_version),
        (first.kind, second.kind),
        (first.spec.scheduler_name, second.spec.scheduler_name),
        (first.spec.restart_policy, second.spec.restart_policy),
    ):
        assert one
        assert one is other


def timed(number):
    """A pod with all its times in one second."""
    pod, when = body((number, "uid-of-timed", "a", "1", "x", "i:1", "True")), "2026-01-02T03:04:05Z"
    pod["metadata"]["creationTimestamp"] = pod["status"]["startTime"] = when
    pod["status"]["conditions"][0]["lastTransitionTime"] = when
    pod["spec"] |= {"schedulerName": "other-scheduler", "restartPolicy": "Always"}
    return pod


def test_views_of_one_template_share_their_containers():
    """Views of pods with the same requests share them as one object."""
    first, second = (view_of_pod(read(timed(number))) for number in (1, 2))
    assert first.containers[0].requests == {"cpu": 1000}
    assert first.containers is second.containers
    other = view_of_pod(read(body((3, "uid-of-timed", "a", "100m", "x", "i:1", "True"))))
    assert other.containers[0].requests == {"cpu": 100}


def test_pods_of_other_owners_and_of_none_share_nothing_so():
    first = read(body((1, "uid-of-two", "a", "1", "x", "i:1", "True")))
    for owner in ("uid-of-three", None):
        other = read(body((1, owner, "a", "1", "x", "i:1", "True")))
        assert other.spec.tolerations == first.spec.tolerations
        assert other.spec.tolerations is not first.spec.tolerations


def test_texts_that_come_often_are_held_once():
    """Namespaces, labels, owners and nodes of many pods are one object each in memory."""
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "shop front",
            "labels": {"app of": "the web"},
            "ownerReferences": [
                {"kind": "Replica Set", "name": "web 1", "uid": "u 1", "apiVersion": "apps v1"}
            ],
        },
        "spec": {"nodeName": "node 1"},
    }
    text = msgspec.json.encode({"metadata": {}, "items": [pod, pod]})
    first, second = map(shared, decode_list(PODS, text)[0].items)
    third = shared(decode_event(msgspec.json.encode({"type": "ADDED", "object": pod}), PODS)[0].object)
    for other in (second, third):
        assert first.metadata.namespace is other.metadata.namespace
        assert first.spec.node_name is other.spec.node_name
        assert first.metadata.owner_references[0].uid is other.metadata.owner_references[0].uid
        for texts in zip(first.metadata.labels.items(), other.metadata.labels.items(), strict=True):
            assert texts[0][0] is texts[1][0]
            assert texts[0][1] is texts[1][1]
