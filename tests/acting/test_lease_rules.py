"""The rules of a Lease: what a claim writes, when a Lease counts as held, and which times are refused."""

from __future__ import annotations

import pytest
from tests.acting.electing import START, TIMES

from kubetide.acting import LeaseTimes
from kubetide.acting.lease import Seen, claim, is_held, release, seen_again
from kubetide.objects.cluster import LeaseSpec
from kubetide.units.time import Duration, Instant, seconds


def test_a_claim_is_written_as_upstream_writes_it():
    """The first holder counts no transition; a renewal moves renewTime only; a new holder counts one."""
    first = claim("a", None, TIMES, START)
    assert first == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-03-02T00:00:00.123456Z",
        "renewTime": "2026-03-02T00:00:00.123456Z",
        "leaseTransitions": 0,
    }
    spec = LeaseSpec(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time=first["acquireTime"],
        renew_time=first["renewTime"],
        lease_transitions=0,
    )
    seen, later = Seen(spec, Duration(0)), Instant(START + seconds(2))
    assert claim("a", seen, TIMES, later) == {**first, "renewTime": "2026-03-02T00:00:02.123456Z"}
    stamp = "2026-03-02T00:00:02.123456Z"
    other = {**first, "holderIdentity": "b", "acquireTime": stamp, "renewTime": stamp, "leaseTransitions": 1}
    assert claim("b", seen, TIMES, later) == other
    assert release(seen, later) == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": stamp,
        "renewTime": stamp,
        "leaseTransitions": 0,
    }


def test_only_a_lease_that_changes_is_alive():
    """The wait counts from when the Lease was first seen with its content, whatever times its fields hold."""
    old = LeaseSpec(holder_identity="a", lease_duration_seconds=15, renew_time="2030-01-01T00:00:00.000000Z")
    seen = seen_again(None, old, seconds(100))
    seen = seen_again(seen, old, seconds(110))
    assert seen.since == seconds(100)
    assert is_held(seen, Duration(seconds(115) - 1), TIMES)
    assert not is_held(seen, seconds(115), TIMES)
    renewed = LeaseSpec(
        holder_identity="a", lease_duration_seconds=60, renew_time="2020-01-01T00:00:00.000000Z"
    )
    seen = seen_again(seen, renewed, seconds(112))
    assert is_held(seen, Duration(seconds(172) - 1), TIMES), "the lease's own duration holds"
    assert not is_held(Seen(LeaseSpec(), Duration(0)), Duration(0), TIMES)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"lease_duration": seconds(10)}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": seconds(9)}, r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
        ({"retry_period": seconds(0)}, "retryPeriod must be greater than zero"),
        ({"lease_duration": seconds(0.5)}, "leaseDuration must be at least 1 s"),
    ],
)
def test_times_that_cannot_work_are_refused(times, said):
    """The rules of upstream, in its words."""
    with pytest.raises(ValueError, match=said):
        LeaseTimes(**times)
