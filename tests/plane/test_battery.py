"""A real control plane passes the Cluster port's battery: the embedded cluster's facts are Kubernetes'."""

from __future__ import annotations

import pytest

from kubetide.cluster import HttpCluster
from kubetide.runtime.timing.clock import run_real
from kubetide.testing.cluster_battery import CASES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_case(case, plane):
    """Each case of the battery holds at kube-apiserver, with the controllers at work."""

    async def run(clock):
        async with HttpCluster(plane.connection, clock) as client:
            await case(client, clock)

    run_real(run)
