"""The class of a pod is the same whichever pods of its owner were seen before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling.plain import make_container, make_pod, required, requirement, term

from kubetide.objects.meta import LabelSelector, OwnerReference
from kubetide.objects.pod import (
    ContainerPort,
    ContainerStatus,
    PersistentVolumeClaimVolume,
    Pod,
    PodResourceClaim,
    PodStatus,
    ProjectedVolume,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from kubetide.scheduling import classify, classify_unbound
from kubetide.scheduling.pods.classes import charges_on_node, use_of

CPU = {"cpu": "100m"}
SPREAD = TopologySpreadConstraint(
    topology_key="zone", max_skew=1, when_unsatisfiable="DoNotSchedule", label_selector=LabelSelector()
)
CLAIM = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="data"))
# What one pod of an owner may have and the next may not.
DIFFERENCES = (
    {},
    {"node_name": "n1"},
    {"labels": {"app": "other"}},
    {"namespace": "elsewhere"},
    {"containers": (make_container({"cpu": "200m"}),)},
    {"containers": (make_container({"cpu": 1}),)},
    {"containers": (make_container({"cpu": "unreadable"}),)},
    {"containers": (replace(make_container(CPU), image="app:2"),)},
    {"containers": (replace(make_container(CPU), ports=(ContainerPort(host_port=80),)),)},
    {"init_containers": (make_container({"cpu": "1"}),)},
    {"init_containers": (replace(make_container({"cpu": "1"}), restart_policy="Always"),)},
    {"resources": ResourceRequirements(requests={"cpu": "3"})},
    {"overhead": {"cpu": "5m"}},
    {"node_selector": {"zone": "a"}},
    {"affinity": required(term(requirement("zone", "In", "a")))},
    {"tolerations": (Toleration(key="dedicated", operator="Exists"),)},
    {"topology_spread_constraints": (SPREAD,)},
    {"volumes": (CLAIM,)},
    {"volumes": (Volume(name="token", projected=ProjectedVolume()),)},
    {"volumes": (Volume(name="own", ephemeral={}),)},
    {"resource_claims": (PodResourceClaim(name="gpu", resource_claim_name="gpu"),)},
    {"resource_claims": (PodResourceClaim(name="gpu", resource_claim_template_name="gpu"),)},
)
STATUSES = (
    PodStatus(),
    PodStatus(container_statuses=(ContainerStatus(name="c", ready=True),)),
    PodStatus(container_statuses=(ContainerStatus(name="c", resources=ResourceRequirements(requests=CPU)),)),
    PodStatus(
        container_statuses=(ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "9"})),)
    ),
    PodStatus(resources=ResourceRequirements(requests={"cpu": "7"})),
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    owner = draw(st.sampled_from(("web", "db", None)))
    given = {
        "containers": (make_container(CPU),),
        "labels": {"app": "web"},
        **draw(st.sampled_from(DIFFERENCES)),
    }
    owners = (OwnerReference(uid=owner, controller=True),) if owner else None
    pod = make_pod(draw(st.sampled_from(("p", "q"))), owner_references=owners, **given)
    deleted = draw(st.sampled_from((None, None, "2026-03-02T08:00:00Z")))
    return replace(
        pod,
        status=draw(st.sampled_from(STATUSES)),
        metadata=replace(pod.metadata, deletion_timestamp=deleted),
    )


@given(st.lists(pods(), max_size=8))
def test_pods_seen_before_do_not_change_the_class(seen):
    """Known by the last pod of the owner, or by all that is read of the pod: the class is the same."""
    for pod in seen:
        unbound = replace(pod, spec=replace(pod.spec, node_name=""))
        assert classify_unbound(pod) == classify(unbound)


@given(st.lists(pods(), max_size=8))
def test_what_columns_hold_of_a_pod_is_the_same_for_pods_of_a_class(seen):
    """Only pods that are resized or being deleted have something of their own."""
    for pod in seen:
        use, pod_class = use_of(pod, 36), classify_unbound(pod)
        assert use.pod_class == pod_class
        assert use.charges == charges_on_node(pod, 36)
        assert use.terminating == (pod.metadata.deletion_timestamp is not None)
        if not use.terminating and use.charges == pod_class.charges:
            assert use is use.pod_class.use
        assert use == use_of(pod, 36, pod_class)
