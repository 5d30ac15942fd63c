"""Where kube-scheduler binds a pod with claims for devices we say that it fits, and give the same devices."""

from __future__ import annotations

import pytest
from tests.conftest import skip_without_plane
from tests.plane.device_claims import compare
from tests.plane.running import running_plane
from tests.plane.scheduling import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """A control plane that takes nodes for ready though nobody reports for them."""
    skip_without_plane()
    with running_plane(tmp_path_factory.mktemp("patient"), manager_flags=PATIENCE) as plane:
        yield plane


def test_devices_are_those_of_kube_scheduler(patient):
    """No verdict, no word and no device differs for 60 pods with random claims."""
    found = compare(patient, nodes=8, pods=60, seed=1)
    assert found.disagreements == []
    assert found.bound > 15, found
    assert found.refused > 10, found
    assert found.devices > 20, found
