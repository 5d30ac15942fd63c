"""Where kube-scheduler binds a pod with claims for devices we say that it fits, and give the same devices."""

from __future__ import annotations

import pytest
from tests.plane.device_claims import compare

pytestmark = pytest.mark.slow


def test_devices_are_those_of_kube_scheduler(patient):
    """No verdict, no word and no device differs for 60 pods with random claims."""
    found = compare(patient, nodes=8, pods=60, seed=1)
    assert found.disagreements == []
    assert found.bound > 15, found
    assert found.refused > 10, found
    assert found.devices > 20, found
