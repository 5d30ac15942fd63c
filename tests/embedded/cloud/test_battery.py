from __future__ import annotations

import asyncio

import pytest

from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.runtime.clock import run_virtual
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.units.time import minutes, parse_rfc3339


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_embedded_cloud_passes_the_battery(case):
    """The embedded cloud does what the Cloud port promises."""

    async def main(clock):
        groups = [
            GroupSpec(name="empty", instance_type="m5.large", max_size=3),
            GroupSpec(name="kept", instance_type="m5.large", min_size=1, max_size=2),
        ]
        cloud = EmbeddedCloud(EmbeddedCluster(Store(), clock), clock, seed=1, groups=groups)
        await cloud.start()
        machines = asyncio.create_task(cloud.run())
        await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(5)))
        machines.cancel()

    run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))
