"""CapacityBuffers: what their specs mean, placeholder pods in the plan, events, and the templates of workloads."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, convert, deployment, group, owner, pod, pods, replica_set
from tests.nodes.requests import TEMPLATES, buffer, conditions_of, pod_template, world

from kubetide.nodes.capacity.buffers.names import template_name
from kubetide.nodes.capacity.buffers.translate import replicas_of
from kubetide.nodes.decision import CopyTemplate
from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.explain.buffers import explain_buffer
from kubetide.nodes.explain.capacity_overview import capacity_tables
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.nodes.records.delta import Unwritten
from kubetide.objects.batch import Job
from kubetide.objects.capacity import CapacityBufferStatus, LocalReference
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.workload import ReplicationController
from kubetide.units.time import format_rfc3339, minutes, seconds

BIG = pod_template("big", cpu="3")


def meta(name):
    return ObjectMeta(name=name, namespace="default", generation=1)


def status(held, name):
    return next(one for one in held.state.capacity.buffers if one.metadata.name == name).status


def said(held, name):
    return conditions_of(status(held, name))


@pytest.mark.parametrize(
    ("spec", "current", "count"),
    [
        ({"replicas": 3}, None, 3),
        ({"replicas": 0}, None, 0),
        ({"percentage": 20}, 10, 2),
        ({"percentage": 25}, 10, 3),
        ({"percentage": 5}, 10, 1),
        ({"percentage": 1}, 1, 1),
        ({"percentage": 0}, 10, 0),
        ({"percentage": 50}, 0, 0),
        ({"percentage": 150}, 3, 5),
        ({"percentage": 50, "replicas": 3}, 10, 5),
        ({"percentage": 20, "replicas": 3}, 10, 3),
        ({"percentage": 90, "replicas": 1, "limits": {"cpu": "10"}}, 10, 3),
        ({"percentage": 20, "replicas": 5, "limits": {"cpu": "30"}}, 10, 5),
        ({"limits": {"cpu": "10"}}, None, 3),
        ({"limits": {"cpu": "10", "memory": "2Gi"}}, None, 2),
        ({"limits": {"cpu": "10"}, "replicas": 2}, None, 2),
        ({"limits": {"cpu": "2"}}, None, 0),
    ],
)
def test_the_larger_number_holds_within_the_limits(spec, current, count):
    """Replicas or a share of the workload rounded up, whichever is more, and no more than the limits allow, as upstream."""
    assert replicas_of(buffer("b", **spec), BIG, current) == count


def test_a_buffer_of_a_template_buys_nodes():
    """Its pods are put on free capacity; for the others nodes are bought, and the event is the buffer's."""
    held = world(buffers=[buffer("room", podTemplateRef={"name": "big"}, replicas=3)], templates=[BIG])
    assert held.increases() == {"g": 2}
    assert said(held, "room") == {
        "ReadyForProvisioning": ("True", "AttributesSetSuccessfully", "ready"),
        "LimitedByQuotas": ("False", "ResourceQuotasAllocated", ""),
        "Provisioning": ("True", "FakePodsInjected", ""),
    }
    found = status(held, "room")
    copied = (template_name("room"), 1)
    assert (found.pod_template_ref.name, found.pod_template_generation, found.replicas) == (*copied, 3)
    assert found.provisioning_strategy == "buffer.x-k8s.io/active-capacity"
    assert {one.type: one.observed_generation for one in found.conditions}["LimitedByQuotas"] == 2
    (event,) = [one for one in held.events if one.reason == "TriggeredScaleUp"]
    assert (event.kind, event.name) == ("CapacityBuffer", "room")
    assert event.message == "capacity buffer 2 fake pods triggered scale-up: [{g 1->3 (max: 10)}]"


def test_a_buffer_that_fits_nowhere_says_why():
    """The reasons of all groups, once for each pod; no event is for a pod that does not exist."""
    giant = pod_template("giant", cpu="30")
    held = world(buffers=[buffer("room", podTemplateRef={"name": "giant"}, replicas=2)], templates=[giant])
    assert held.increases() == {}
    (event,) = held.events
    assert event.message == (
        "capacity buffer 2 fake pods didn't trigger scale-up: 1 Insufficient cpu,1 Insufficient cpu"
    )
    lines = explain_buffer(held.state, ("default", "room"), START)
    assert lines[0] == "0 of the 2 requested pods have capacity."
    assert any(line.startswith("group g: no, ") for line in lines)


def test_a_group_at_its_maximum_that_is_too_small_as_well_says_both():
    """A larger maximum would not help such pods, so the answer, and the page of status, name the pods' own obstacle too."""
    buffers = [buffer("room", podTemplateRef={"name": "giant"}, replicas=2)]
    giant, full = pod_template("giant", cpu="30"), group("g", nodes=["n1"], maximum=1)
    held = world(buffers=buffers, templates=[giant], groups=[full])
    held.tick()
    refusal = (
        "group g: no, max node group size reached, and its nodes would not take them either: Insufficient cpu "
        "(cpu: 30 requested, 4 free of 4 allocatable)"
    )
    assert explain_buffer(held.state, ("default", "room"), START)[-1] == refusal
    (table,) = capacity_tables(held.state, START)
    (row,) = table.rows
    assert dict(zip(table.columns, row, strict=True))["why"] == refusal


def test_a_group_in_backoff_says_until_when():
    """What the answer about a pod says of a group, that about a buffer says, too."""
    held = world(buffers=[buffer("room", podTemplateRef={"name": "big"}, replicas=3)], templates=[BIG])
    held.refused["g"] = "no"
    held.tick()
    assert explain_buffer(held.state, ("default", "room"), START)[-1] == (
        "group g: no, in backoff after failed scale-up until 2026-03-02T08:05:00Z"
    )


def test_at_the_maximum_of_nodes_each_buffer_says_so():
    """No group is asked there; what has a place needs no event."""
    both = [buffer(name, podTemplateRef={"name": "big"}, replicas=2) for name in ("a", "b")]
    held = world(buffers=both, templates=[BIG], max_nodes_total=1)
    assert held.increases() == {}
    full = "max total nodes in cluster reached"
    assert {one.name: one.message for one in held.events if one.reason == "NotTriggerScaleUp"} == {
        "a": f"capacity buffer 1 fake pods didn't trigger scale-up: {full}",
        "b": f"capacity buffer 2 fake pods didn't trigger scale-up: {full},{full}",
    }


def test_a_buffer_that_cannot_be_resolved_says_what_is_missing():
    """A wrong reference leaves the others alone, and reserves no capacity."""
    held = world(
        buffers=[
            buffer("lost", podTemplateRef={"name": "none"}, replicas=1),
            buffer("bare", podTemplateRef={"name": "big"}),
            buffer("empty", podTemplateRef={"name": "big"}, replicas=0),
            buffer("gone", scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "web"}, replicas=1),
            buffer("typo", podTemplateRef={"name": "big"}, replicas=2_000_000_000),
            buffer("odd", podTemplateRef={"name": "big"}, limits={"cpu": "many"}),
            buffer("debt", podTemplateRef={"name": "big"}, limits={"cpu": "-4", "memory": "2Gi"}),
            buffer("good", podTemplateRef={"name": "big"}, replicas=1),
        ],
        templates=[BIG],
    )
    held.tick()
    ready, not_ready = "ReadyForProvisioning", "Buffer not ready for provisioning: "
    missing = f'{not_ready}capacity buffer client can\'t get pod template: podtemplates "none" not found'
    assert said(held, "lost")[ready] == ("False", "error", missing)
    lines = explain_buffer(held.state, ("default", "lost"), START)
    assert lines[0] == f"No capacity is reserved: {missing}."
    uncounted = "couldn't get number of replicas for buffer: replicas, percentage and limits are not defined"
    assert said(held, "bare")[ready] == ("False", "error", f"{not_ready}{uncounted}")
    assert set(said(held, "bare")) == {ready}
    assert said(held, "empty")["Provisioning"] == (
        "False",
        "BufferIsEmpty",
        "CapacityBuffer has zero replicas",
    )
    assert "at most 100000" in said(held, "typo")[ready][2]
    assert "spec.limits[cpu]" in said(held, "odd")[ready][2]
    below = f"{not_ready}couldn't get number of replicas for buffer: spec.limits[cpu]: -4: give 0 or more"
    assert said(held, "debt") == {ready: ("False", "error", below)}
    assert "there is no Deployment default/web" in said(held, "gone")[ready][2]
    assert said(held, "good")["Provisioning"][0] == "True"


def test_a_buffer_that_is_ready_no_more_reserves_nothing_and_says_so():
    """What is known of its template stays in the status; one that never was ready has no condition of provisioning."""
    room = buffer("room", podTemplateRef={"name": "big"}, replicas=1)
    held = world(buffers=[room, buffer("bare", podTemplateRef={"name": "big"})], templates=[BIG])
    held.tick()
    assert said(held, "room")["Provisioning"][0] == "True"
    bare = buffer("room", podTemplateRef={"name": "big"}, conditions=status(held, "room").conditions)
    held.tick(at=seconds(10), capacity=CapacityChanges(capacity_buffers=(bare,)))
    assert said(held, "room")["Provisioning"][:2] == ("False", "NotReadyForProvisioning")
    found = status(held, "room")
    copied = (template_name("room"), 1)
    assert (found.pod_template_ref.name, found.pod_template_generation, found.replicas) == (*copied, None)
    assert "Provisioning" not in said(held, "bare")


def test_expendable_placeholders_buy_nothing():
    """Pods of so low a priority buy no node, nor does capacity for such pods."""
    low = replace(BIG, template=replace(BIG.template, spec=replace(BIG.template.spec, priority=-11)))
    held = world(buffers=[buffer("room", podTemplateRef={"name": "big"}, replicas=3)], templates=[low])
    assert held.increases() == {}


def test_placeholders_with_cloud_tpus_need_no_node_that_offers_them():
    """As pods do not: a Cloud TPU is reached over the network."""
    (container,) = BIG.template.spec.containers
    amounts = {**container.resources.requests, "cloud-tpus.google.com/v3": "8"}
    resources = replace(container.resources, requests=amounts, limits=amounts)
    spec = replace(BIG.template.spec, containers=(replace(container, resources=resources),))
    tpu = replace(BIG, template=replace(BIG.template, spec=spec))
    held = world(buffers=[buffer("room", podTemplateRef={"name": "big"}, replicas=3)], templates=[tpu])
    assert held.increases() == {"g": 2}


def test_placeholders_are_not_new():
    """A pod of a second ago is not waited for where a buffer needs a node as well; alone it is."""
    young = pod("young", cpu="3", created=format_rfc3339(START))
    room = buffer("room", podTemplateRef={"name": "big"}, replicas=2)
    held = world(buffers=[room], templates=[BIG], pods=[young])
    assert held.increases(at=seconds(1)) == {"g": 2}
    held = world(pods=[young], nodes=())
    assert held.increases(at=seconds(1)) == {}


def test_a_share_of_a_workload():
    """The template is copied from the newest pod, and the share is of the pods that there are."""
    spare = buffer(
        "spare", scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "web"}, percentage=50
    )
    held = world(buffers=[spare], pods=pods("p", 4, cpu="1", node="n1", of="web-1"))
    held.tick(deployments=(deployment("web", 4),), replica_sets=(replica_set("web-1", 4, of="web"),))
    name = template_name("spare")
    made = held.state.capacity.template("default", name)
    assert made.metadata.generation == 1
    assert made.template.spec.containers[0].resources.requests["cpu"] == "1"
    assert status(held, "spare").replicas == 2
    assert held.state.groups["g"].target_size == 2
    assert held.state.memory.buffer_templates == {f"default/{name}": "uid-p-3"}


def _spare(kind, group="apps", **spec):
    return buffer("spare", scalableRef={"apiGroup": group, "kind": kind, "name": "web"}, **spec)


def test_a_workload_is_found_by_its_group():
    """A kind of the same name in another group is another kind: as upstream, its pods are not taken. The message says the fix."""
    old = {"ownerReferences": [{**owner("ReplicationController"), "apiVersion": "v1"}]}
    own = [pod("set", node="n1", kind="StatefulSet"), pod("old", node="n1", kind=None, metadata=old)]

    def answer(kind, group):
        held = world(buffers=[_spare(kind, group, replicas=1)], pods=own)
        held.tick()
        return said(held, "spare")["ReadyForProvisioning"][2]

    assert [answer("ReplicationController", group) for group in ("", "core")] == ["ready", "ready"]
    found = {group: answer("StatefulSet", group) for group in ("", "apps.kruise.io")}
    assert found[""] == (
        "Buffer not ready for provisioning: Couldn't resolve buffer spare: there is no StatefulSet default/web, "
        "and no pod that one controls; a StatefulSet has spec.scalableRef.apiGroup: apps"
    )
    assert "there is no StatefulSet default/web of group apps.kruise.io" in found["apps.kruise.io"]


def _of_generation(item, generation):
    return replace(item, metadata=replace(item.metadata, generation=generation))


def test_a_workload_without_pods_has_its_own_template():
    """The copy of its last pod gives way to what the workload says, and follows it when that changes."""
    held = world(
        buffers=[_spare("Deployment", replicas=1)], pods=pods("p", 1, cpu="1", node="n1", of="web-1")
    )
    name = template_name("spare")

    def copied(at, **changes):
        held.tick(at=seconds(at), **changes)
        made = held.state.capacity.template("default", name)
        copies = [one for one in held.writes if isinstance(one, CopyTemplate)]
        return [one.source for one in copies], made.template.spec.containers[0].resources.requests["cpu"]

    web = _of_generation(deployment("web", 1, cpu="2"), 1)
    sets = (replica_set("web-1", 1, of="web"),)
    assert copied(0, deployments=(web,), replica_sets=sets) == (["pods"], "1")
    assert copied(10, deleted_pods=[("default", "p-0")]) == (["deployments"], "2")
    larger = _of_generation(deployment("web", 1, cpu="3"), 2)
    assert copied(20, deployments=(larger,)) == (["deployments"], "3")
    assert copied(30) == ([], "3")


def test_a_job_counts_by_its_parallelism():
    """A Job has no scale subresource: as upstream, its template and its number of pods are what it says itself."""
    held = world(buffers=[_spare("Job", "batch", percentage=50)], pods=pods("p", 2, node="n1", kind="Job"))
    body = {"metadata": {"name": "web", "namespace": "default", "uid": "uid-web"}, "spec": {"parallelism": 8}}
    held.tick(jobs=(convert(body, Job),))
    name = template_name("spare")
    assert held.writes[0] == CopyTemplate("spare", "uid-spare", "default", name, "jobs", "web")
    held.tick(at=seconds(10), capacity=CapacityChanges(pod_templates=(replace(BIG, metadata=meta(name)),)))
    assert status(held, "spare").replicas == 4


def test_a_replication_controller_without_pods():
    """As upstream, its template and its number of pods are what it says itself."""
    held = world(buffers=[_spare("ReplicationController", "core", percentage=50)])
    named = {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1}
    empty = convert({"metadata": named, "spec": {"replicas": 4}}, ReplicationController)
    held.tick(replication_controllers=(empty,))
    name = template_name("spare")
    assert held.writes[0] == CopyTemplate(
        "spare", "uid-spare", "default", name, "replicationcontrollers", "web"
    )
    held.tick(at=seconds(10), capacity=CapacityChanges(pod_templates=(replace(BIG, metadata=meta(name)),)))
    assert (said(held, "spare")["ReadyForProvisioning"][0], status(held, "spare").replicas) == ("True", 2)


def test_a_copy_that_could_not_be_written_is_made_again():
    """The next tick tries it, though the source is the same as before."""
    old = pod_template(template_name("spare"), cpu="2")
    held = world(
        buffers=[_spare("Deployment", replicas=1)],
        templates=[old],
        pods=pods("p", 1, cpu="1", node="n1", of="web-1"),
    )
    web = {"deployments": (deployment("web", 1),), "replica_sets": (replica_set("web-1", 1, of="web"),)}
    held.tick(**web)
    copy = held.writes[0]
    assert isinstance(copy, CopyTemplate)
    failed = Unwritten("default", old.metadata.name, "it is down")
    held.tick(at=seconds(10), unwritten=(failed,), capacity=CapacityChanges(pod_templates=(old,)))
    assert held.writes[0] == copy


def test_a_named_template_is_copied_when_it_changes():
    """The pods are of the copy, whose generation the status has; a quiet buffer copies nothing."""
    held = world(buffers=[buffer("room", podTemplateRef={"name": "big"}, replicas=3)], templates=[BIG])
    name = template_name("room")
    copy = CopyTemplate("room", "uid-room", "default", name, "podtemplates", "big")
    held.tick()
    assert held.writes[0] == copy
    held.tick(at=seconds(10))
    assert held.writes == []
    larger = pod_template("big", cpu="4", generation=2)
    held.tick(at=seconds(20), capacity=CapacityChanges(pod_templates=(larger,)))
    assert held.writes[0] == copy
    assert status(held, "room").pod_template_generation == 2
    assert held.state.capacity.template("default", name).template == larger.template


def test_a_buffer_may_come_to_name_a_workload():
    """The copy of its PodTemplate gives way to the workload's template, though the workload has no pod."""
    held = world(buffers=[buffer("room", podTemplateRef={"name": "big"}, replicas=1)], templates=[BIG])
    held.tick(deployments=(deployment("web", 0),))
    web = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    changed = CapacityChanges(capacity_buffers=(buffer("room", scalableRef=web, replicas=1),))
    held.tick(at=seconds(10), capacity=changed)
    name = template_name("room")
    assert held.writes[0] == CopyTemplate("room", "uid-room", "default", name, "deployments", "web")
    held.tick(at=seconds(20))
    assert held.writes == []


def test_reserved_capacity_holds_a_node():
    """A node goes when the placeholder pods on it fit elsewhere, and stays when they do not."""
    buffered = buffer("room", podTemplateRef={"name": "big"}, replicas=2)
    held = world(buffers=[buffered], templates=[BIG], nodes=("n1", "n2", "n3"))
    held.tick()
    assert list(held.state.memory.scale_down.unneeded) == ["n1"]


def test_without_injection_nothing_is_bought():
    """The controller alone writes statuses; no nodes are requested."""
    buffered = buffer("room", podTemplateRef={"name": "big"}, replicas=3)
    held = world(buffers=[buffered], templates=[BIG], capacity_buffer_pod_injection_enabled=False)
    assert held.increases() == {}
    assert "Provisioning" not in said(held, "room")
    assert status(held, "room").replicas == 3


def test_a_count_for_an_older_template_reserves_nothing():
    """Where another program translates buffers, one waits until its status is of the template's generation, as upstream."""
    ready = {"type": "ReadyForProvisioning", "status": "True", "reason": "AttributesSetSuccessfully"}
    room = buffer("room", podTemplateRef={"name": "big"}, replicas=3, conditions=[ready])
    counted = CapacityBufferStatus(
        pod_template_ref=LocalReference("big"),
        replicas=3,
        pod_template_generation=1,
        provisioning_strategy="buffer.x-k8s.io/active-capacity",
        conditions=room.status.conditions,
    )
    held = world(
        buffers=[replace(room, status=counted)],
        templates=[pod_template("big", cpu="3", generation=2)],
        capacity_buffer_controller_enabled=False,
    )
    assert held.increases() == {}
    assert status(held, "room") == counted
    current = replace(room, status=replace(counted, pod_template_generation=2))
    changed = CapacityChanges(capacity_buffers=(current,))
    assert held.increases(at=seconds(10), capacity=changed) == {"g": 2}
    assert said(held, "room")["Provisioning"][0] == "True"
    lost = replace(room, status=replace(counted, pod_template_ref=LocalReference("none")))
    held.tick(at=seconds(20), capacity=CapacityChanges(capacity_buffers=(lost,)))
    _, reason, message = said(held, "room")["Provisioning"]
    missing = 'capacity buffer client can\'t get pod template: podtemplates "none" not found'
    assert (reason, message) == (
        "FailedToGetPodTemplate",
        f"failed to get pod template with error: {missing}",
    )


def test_new_pods_take_the_reserved_capacity():
    """Pods that are pending are put before placeholders, which then have more bought behind them."""
    buffered = buffer("room", podTemplateRef={"name": "big"}, replicas=1)
    held = world(buffers=[buffered], templates=[BIG])
    assert held.increases() == {}
    assert held.increases(at=seconds(10), pods=(pod("real", cpu="3"),)) == {"g": 1}


def test_the_times_of_a_status_stay():
    """A condition's time changes only with its status: a quiet buffer is written once."""
    buffered = buffer("room", podTemplateRef={"name": "big"}, replicas=1)
    held = world(buffers=[buffered], templates=[BIG])
    held.tick()
    before = status(held, "room")
    held.tick(at=minutes(5))
    assert status(held, "room") == before
    assert msgspec.json.encode(before).count(b"2026-03-02T08:00:00Z") == 3


def test_names_are_not_too_long():
    """The name of a buffer's template is cut to what the API server takes."""
    assert template_name("a") == "capacitybuffer-a-pod-template"
    assert len(template_name("a" * 253)) == 253


def test_a_pod_that_is_named_as_a_placeholder_would_be_keeps_its_place():
    """The plan knows pods by their names: a placeholder took the place of a StatefulSet's pod, whose node then counted as idle."""
    there = pod("capacity-buffer-spare-1", cpu="2", node="n1")
    spare = buffer("spare", podTemplateRef={"name": "small"}, replicas=2)
    held = world(buffers=[spare], templates=TEMPLATES, nodes=("n1", "n2"), pods=[there])
    held.tick()
    assert explain_node(held.state, "n1", held.now).utilization == 0.75
    assert held.increases(at=seconds(10), pods=(pod("large", cpu="3500m"),)) == {"g": 1}
