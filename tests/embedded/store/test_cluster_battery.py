"""The embedded cluster passes the Cluster port's battery."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing.cluster_battery import CASES
from kubetide.units.time import parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_case(case):
    """Each case of the battery holds."""
    run_virtual(lambda clock: case(EmbeddedCluster(Store(), clock, seed=1), clock), start=START)


def test_cases_have_names_of_their_own():
    """No case of the battery hides another."""
    names = [case.__name__ for case in CASES]
    assert len(names) == len(set(names)) >= 60
    assert all(case.__doc__ for case in CASES)
