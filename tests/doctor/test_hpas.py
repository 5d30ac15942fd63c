"""What the doctor says of HPAs and VPAs: one cause is one finding."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.test_checks import deployment, found, hpa, vpa, without_requests

from kubetide.objects.vpa import VpaStatus
from kubetide.vertical.recommender.settings import Settings

LEFT = {"conditions": [{"type": "ResourcesLeftToHPA", "status": "True"}]}
CPU, MEMORY = (
    {"recommendation": {"containerRecommendations": [{"containerName": "app", "target": {name: "1"}}]}}
    for name in ("cpu", "memory")
)


@pytest.mark.parametrize(
    ("message", "target", "named"),
    [
        ("missing request for cpu in container app of Pod web-1", without_requests("web"), ["hpa-requests"]),
        ("unable to fetch metrics from external metrics API", without_requests("web"), ["hpa-requests", "hpa-metric"]),
        ("missing request for cpu in container side of Pod web-1", deployment("web", 1), ["hpa-metric"]),
    ],
    ids=["the same cause", "another cause", "a container that is injected"],
)  # fmt: skip
def test_a_request_that_lacks_is_reported_once(message, target, named):
    """The failing metric is a finding of its own only where the workload's own requests do not explain it."""
    failed = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetResourceMetric",
        "message": f"the HPA was unable to compute the replica count: failed to get cpu utilization: {message}",
    }
    objects = {
        "hpas": (hpa("web", "web", extra={"status": {"conditions": [failed]}}),),
        "deployments": (target,),
    }
    assert [check for check in ("hpa-requests", "hpa-metric") if found(check, **objects)] == named


def test_vpas_without_a_target_of_their_own():
    """A target that is not there, and two VPAs that would change the pods of one; one that only recommends is no rival."""
    web = deployment("web", 1)
    (one,) = found("vpa-target", vpas=(vpa("wbe"),), deployments=(web,))
    assert (one.object, one.seen) == (
        "VerticalPodAutoscaler default/v",
        "its target Deployment wbe does not exist in namespace default",
    )
    meta = msgspec.structs.replace(vpa("web").metadata, name="w")
    other = msgspec.structs.replace(vpa("web"), metadata=meta)
    (one,) = found("vpa-target", vpas=(vpa("web"), other), deployments=(web,))
    assert (one.object, one.seen) == ("Deployment default/web", "2 VPAs would change its pods: v, w")
    quiet = vpa("web", updatePolicy={"updateMode": "Off"})
    assert found("vpa-target", vpas=(quiet, other), deployments=(web,)) == []
    assert found("vpa-target", vpas=(vpa("wbe"),), unread={"deployments": "forbidden"}) == []


@pytest.mark.parametrize(
    ("status", "settings", "named", "severity"),
    [
        ({}, {}, "", "info"),
        (LEFT, {"leave_to_hpa": False}, "", "info"),
        (MEMORY, {}, "", "info"),
        (CPU, {}, "", "warning"),
        ({}, {"leave_to_hpa": False}, "", "warning"),
        ({}, {}, "theirs", "warning"),
    ],
    ids=["ours by default", "its status says so", "the other resource", "recommended all the same", "option off", "another recommender"],
)  # fmt: skip
def test_a_resource_that_the_recommender_leaves_to_the_hpa_is_no_conflict(status, settings, named, severity):
    """The status of the VPA says what its recommender does; without one, the settings of ours."""
    recommenders = {"recommenders": [{"name": named}]} if named else {}
    served = msgspec.structs.replace(vpa("web", **recommenders), status=msgspec.convert(status, VpaStatus))
    (one,) = found("hpa-and-vpa", hpas=(hpa("web", "web"),), vpas=(served,), recommender=Settings(**settings))
    assert (one.severity, one.object) == (severity, "VerticalPodAutoscaler default/v")
    assert ("leaves cpu of Deployment web to HorizontalPodAutoscaler default/web" in one.seen) is (
        severity == "info"
    )
