"""Which pending pods count as copies of one pod."""

from __future__ import annotations

from tests.scheduling.plain import make_container, make_pod

from kubetide.objects.meta import OwnerReference
from kubetide.objects.pod import Container, Volume, VolumeMount
from kubetide.scheduling import equivalence_groups


def owned(uid="rs", kind="ReplicaSet"):
    return (OwnerReference(kind=kind, name="owner", uid=uid, controller=True),)


def grouped(*pods):
    return [[pod.metadata.name for pod in group.pods] for group in equivalence_groups(pods)]


def test_pods_of_one_controller_are_grouped_in_order_of_the_first():
    """Groups come in the order of their first pods; other controllers make other groups."""
    pods = [
        make_pod(name, {"cpu": "1"}, owner_references=owned(uid))
        for name, uid in zip("abcd", "1212", strict=True)
    ]
    assert grouped(*pods) == [["a", "c"], ["b", "d"]]


def test_pods_without_controller_and_daemon_pods_are_alone():
    """Only pods of a controller that is no DaemonSet can be copies of one another."""
    daemons = [make_pod(name, owner_references=owned(kind="DaemonSet")) for name in ("c", "d")]
    assert grouped(make_pod("a"), make_pod("b"), *daemons) == [["a"], ["b"], ["c"], ["d"]]


def test_amounts_are_compared_by_value():
    """1 CPU and 1000m are the same request, 1001m is not."""
    pods = [
        make_pod(name, {"cpu": cpu}, owner_references=owned())
        for name, cpu in (("a", "1"), ("b", "1000m"), ("c", "1001m"))
    ]
    assert grouped(*pods) == [["a", "b"], ["c"]]


def test_absent_and_empty_are_alike_but_not_for_labels():
    """An empty list or map in the spec is as none; labels {} and no labels differ."""
    one = make_pod("a", owner_references=owned(), node_selector={}, tolerations=())
    two = make_pod("b", owner_references=owned())
    three = make_pod("c", owner_references=owned(), labels={})
    assert grouped(one, two, three) == [["a", "b"], ["c"]]


def test_projected_volumes_do_not_count():
    """Every pod has its own token volume: it and its mounts do not distinguish pods, other volumes do."""

    def with_volume(name, volume):
        container = Container(name="c", volume_mounts=(VolumeMount(name=volume.name),))
        return make_pod(name, containers=(container,), volumes=(volume,), owner_references=owned())

    tokens = [
        with_volume(name, Volume(name=f"token-{name}", projected={"sources": []})) for name in ("a", "b")
    ]
    paths = [with_volume(name, Volume(name=f"path-{name}", host_path={"path": "/"})) for name in ("c", "d")]
    assert grouped(*tokens, *paths) == [["a", "b"], ["c"], ["d"]]


def test_ten_groups_a_controller():
    """The eleventh distinct pod of a controller is alone, and so are its copies."""
    pods = [make_pod(f"p{index}", {"cpu": f"{index + 1}"}, owner_references=owned()) for index in range(11)]
    copies = [
        make_pod("late", {"cpu": "11"}, owner_references=owned()),
        make_pod("early", {"cpu": "1"}, owner_references=owned()),
    ]
    groups = grouped(*pods, *copies)
    assert groups[0] == ["p0", "early"]
    assert groups[-2:] == [["p10"], ["late"]]


def test_a_group_has_the_class_of_its_first_pod():
    """The class of a group has the requests of its first pod."""
    pods = [
        make_pod(name, containers=(make_container({"cpu": "2"}),), owner_references=owned()) for name in "ab"
    ]
    (group,) = equivalence_groups(pods)
    assert dict(group.pod_class.requests) == {"cpu": 2000}
