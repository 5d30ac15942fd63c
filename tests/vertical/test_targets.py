"""Targets of VPAs: their pods, and who owns them."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.workload import Scale
from kubetide.vertical.targets import (
    ControllerKey,
    Controllers,
    ScaleNotFound,
    TargetError,
    read_target,
    topmost,
)
from kubetide.vertical.workloads import WELL_KNOWN, view_of

APP = {"matchLabels": {"app": "web"}}


def made(kind, name, owner=None, **spec):
    owners = (
        []
        if owner is None
        else [{"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "controller": True}]
    )
    body = {"metadata": {"name": name, "namespace": "shop", "ownerReferences": owners}, "spec": spec}
    return kind, name, body


def known(*objects, scales=()):
    found = {
        (kind, name): msgspec.convert(body, WELL_KNOWN[kind])
        for kind, name, body in objects
        if kind in WELL_KNOWN
    }
    by_scale = {(kind, name): msgspec.convert(body, Scale) for kind, name, body in scales}

    def scale(key):
        if (key.kind, key.name) not in by_scale:
            raise ScaleNotFound(f"{key.kind} {key.name} has no scale")
        return by_scale[key.kind, key.name]

    return Controllers(lambda _, kind, name: found.get((kind, name)), scale)


def target(kind, name, *objects, scales=()):
    reference = CrossVersionObjectReference(api_version="apps/v1", kind=kind, name=name)
    return read_target("shop", reference, known(*objects, scales=scales))


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_a_well_known_controller_selects_by_its_selector(kind):
    """The pods of a well-known controller are those that its selector matches."""
    found = target(kind, "web", made(kind, "web", selector=APP))
    assert (found.selector, found.matches, found.problem) == ("app=web", True, "")


def test_a_replication_controller_and_a_cron_job_select_by_labels():
    """A ReplicationController's selector is a map of labels; a CronJob's pods are those with its template's labels."""
    found = target(
        "ReplicationController", "web", made("ReplicationController", "web", selector={"app": "web"})
    )
    assert found.selector == "app=web"
    template = {"metadata": {"labels": {"app": "cron"}}}
    job = made("CronJob", "web", jobTemplate={"spec": {"template": template}})
    assert target("CronJob", "web", job).selector == "app=cron"


def test_another_kind_selects_by_its_scale():
    """A kind that is not well known is read through its scale; without a selector there it cannot be used."""
    body = {"metadata": {"name": "web", "namespace": "shop"}, "status": {"selector": "app=web"}}
    assert target("Widget", "web", scales=[("Widget", "web", body)]).selector == "app=web"
    bare = {**body, "status": {}}
    assert target("Widget", "web", scales=[("Widget", "web", bare)]).problem == (
        "Cannot read targetRef. Reason: unhandled targetRef apps/v1 / Widget / web, last error "
        "resource shop/web has an empty selector for scale sub-resource"
    )
    odd = {**body, "status": {"selector": "app in"}}
    assert target("Widget", "web", scales=[("Widget", "web", odd)]).problem.startswith(
        "Cannot read targetRef. Reason: unhandled targetRef apps/v1 / Widget / web, last error "
    )


def test_a_vpa_of_an_old_version_has_no_target():
    """The condition says so in upstream's words."""
    found = read_target("shop", None, Controllers(lambda *_: None, lambda _: Scale()))
    assert found.problem == (
        "Cannot read targetRef. Reason: targetRef not defined. If this is a v1beta1 object, switch to v1"
    )


def test_a_target_that_somebody_owns_is_not_used():
    """A ReplicaSet of a Deployment is refused with upstream's words."""
    found = target(
        "ReplicaSet",
        "web-1",
        made("ReplicaSet", "web-1", owner=("Deployment", "web"), selector=APP),
        made("Deployment", "web", selector=APP),
    )
    assert not found.matches
    assert found.problem == (
        "The target apps/v1.ReplicaSet/web-1 has a parent controller but it should point to a "
        "topmost well-known or scalable controller"
    )


def test_the_topmost_owner_is_found_over_several():
    """The walk goes up owner by owner; a Node is no owner, a cycle ends with an error."""
    objects = [
        made("ReplicaSet", "web-1", owner=("Deployment", "web"), selector=APP),
        made("Deployment", "web", owner=("StatefulSet", "all"), selector=APP),
        made("StatefulSet", "all", selector=APP),
        made("ReplicaSet", "on-node", owner=("Node", "n1"), selector=APP),
        made("ReplicaSet", "a", owner=("ReplicaSet", "b"), selector=APP),
        made("ReplicaSet", "b", owner=("ReplicaSet", "a"), selector=APP),
    ]
    start = ControllerKey("shop", "ReplicaSet", "web-1", "apps/v1")
    assert topmost(start, known(*objects)) == ControllerKey("shop", "StatefulSet", "all", "apps/v1")
    with pytest.raises(TargetError, match="node is not a valid owner"):
        topmost(ControllerKey("shop", "ReplicaSet", "on-node"), known(*objects))
    with pytest.raises(TargetError, match="cycle detected in ownership chain"):
        topmost(ControllerKey("shop", "ReplicaSet", "a", "apps/v1"), known(*objects))


def test_an_owner_without_a_scale_is_no_parent():
    """A StatefulSet of an operator's resource that has no scale is a target; of one with a scale it is none."""
    owned = made("StatefulSet", "web", owner=("Database", "main"), selector=APP)
    assert target("StatefulSet", "web", owned).selector == "app=web"
    scale = {"metadata": {"name": "main", "namespace": "shop"}, "status": {"selector": "app=web"}}
    scaled = target("StatefulSet", "web", owned, scales=[("Database", "main", scale)])
    assert "has a parent controller" in scaled.problem
    assert "has no scale" in target("Database", "main").problem


def test_recommender_and_updater_see_the_same_pods():
    """A controller's view has the selector that its target has; labels that are not there select nothing."""
    template = {"spec": {"template": {"spec": {"containers": []}}}}
    labelled = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}}}
    objects = [
        made("Deployment", "web", selector=APP),
        made("ReplicationController", "web", selector={"app": "web"}),
        made("ReplicationController", "web"),
        made("CronJob", "web", jobTemplate=template, schedule="@daily"),
        made("CronJob", "web", jobTemplate=labelled, schedule="@daily"),
    ]
    for kind, name, body in objects:
        found = target(kind, name, (kind, name, body))
        view = view_of(kind, msgspec.convert(body, WELL_KNOWN[kind]))
        assert (view.selector is not None, view.selector or "") == (found.matches, found.selector)
