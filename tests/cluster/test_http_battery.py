"""The HTTP client against the served embedded cluster passes the Cluster port's battery."""

from __future__ import annotations

import pytest
from tests.cluster.served import with_client

from kubetide.testing.cluster_battery import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_case(case):
    """Each case of the battery holds over HTTPS."""
    with_client(lambda client, _, clock: case(client, clock))
