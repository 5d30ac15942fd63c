from __future__ import annotations

import pytest

from kubetide.objects.qos import qos_class


def container(requests=None, limits=None):
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


BOTH = {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"name": "c"}]}, "BestEffort"),
        ({"containers": [container({"ephemeral-storage": "1Gi"})]}, "BestEffort"),
        ({"containers": [container({"cpu": "0"})]}, "BestEffort"),
        ({"containers": [container({"cpu": "1"})]}, "Burstable"),
        ({"containers": [container(BOTH, BOTH)]}, "Guaranteed"),
        ({"containers": [container({"cpu": "0.5", "memory": "1024Mi"}, BOTH)]}, "Guaranteed"),
        ({"containers": [container(BOTH, {"cpu": "1", "memory": "1Gi"})]}, "Burstable"),
        ({"containers": [container(BOTH, BOTH), container()]}, "Burstable"),
        ({"containers": [container(BOTH, BOTH)], "initContainers": [container()]}, "Burstable"),
        ({"containers": [container({"cpu": "1"}, {"cpu": "1"})]}, "Burstable"),
        ({"containers": [container()], "resources": {"requests": BOTH, "limits": BOTH}}, "Guaranteed"),
    ],
)
def test_the_class_of_a_pod(spec, expected):
    """All of cpu and memory limited and requested alike is Guaranteed, nothing at all is BestEffort."""
    assert qos_class(spec) == expected
