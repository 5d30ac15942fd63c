"""Many groups of fifteen machines at rest: which calls a refresh makes, and how many."""

from __future__ import annotations

import asyncio

import pytest
from tests.clouds.scale import CLOUDS, MACHINES, refreshed

GROUPS = 200

CALLS = {
    "aws": {"DescribeAutoScalingGroups": GROUPS // 100},
    "gce": {"instanceGroups": 1, "instanceGroupManagers": 1, "listManagedInstances": GROUPS},
    "gce, in bulk": {"instanceGroups": 1, "instanceGroupManagers": 1, "instances": GROUPS * MACHINES // 500},
    "azure": {"virtualMachineScaleSets": 1},
    "tencent": {"DescribeAutoScalingGroups": GROUPS // 100, "DescribeAutoScalingInstances": GROUPS},
    "alibaba": {"DescribeScalingGroups": GROUPS // 20, "DescribeScalingInstances": GROUPS},
}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_calls_grow_with_pages_or_groups_and_never_with_machines(cloud):
    """At rest; in bulk GCE is asked by pages of machines, and what changes nothing is not asked again."""
    minute = asyncio.run(refreshed(CLOUDS[cloud], GROUPS))
    assert minute.sizes == [MACHINES] * GROUPS
    assert minute.calls == CALLS[cloud]
