"""What the doctor says of HPAs: one cause is one finding."""

from __future__ import annotations

import pytest
from tests.doctor.test_checks import deployment, found, hpa, without_requests


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
