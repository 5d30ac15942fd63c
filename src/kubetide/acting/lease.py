"""Leader election, decided purely: how to read a Lease, and what to write.

Whether somebody else's lease has run out is decided by how long *this* process has seen it unchanged, never
by the times in it: clocks of machines differ. Source: client-go v1.36 (tools/leaderelection).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kubetide.objects.base import Json
from kubetide.objects.cluster import LeaseSpec
from kubetide.units.time import Duration, Instant, format_rfc3339_micro, seconds

JITTER = 1.2
"""By how much of itself the pause between two tries to get the lease may grow, as upstream's JitterFactor."""

_LEASE_DURATION, _RENEW_DEADLINE, _RETRY_PERIOD = seconds(15), seconds(10), seconds(2)


@dataclass(frozen=True)
class LeaseTimes:
    """The times of an election; defaults and rules are upstream's.

    Attributes:
        lease_duration: How long others wait for a leader that says nothing (``--leader-elect-lease-duration``).
        renew_deadline: After how long without a renewal the leader gives up (``--leader-elect-renew-deadline``).
        retry_period: Between two tries (``--leader-elect-retry-period``).

    Raises: ValueError.
    """

    lease_duration: Duration = _LEASE_DURATION
    renew_deadline: Duration = _RENEW_DEADLINE
    retry_period: Duration = _RETRY_PERIOD

    def __post_init__(self) -> None:
        if self.lease_duration < seconds(1):
            raise ValueError("leaseDuration must be at least 1 s, as a Lease holds whole seconds")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline <= self.retry_period * JITTER:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")


class Seen(NamedTuple):
    """A Lease as last read or written.

    Attributes:
        spec: What it says.
        since: Elapsed time when it was first seen to say this.
    """

    spec: LeaseSpec
    since: Duration

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""


def seen_again(before: Seen | None, spec: LeaseSpec, now: Duration) -> Seen:
    """Return the observation of a Lease; an unchanged one keeps the time of its first observation."""
    return before if before is not None and before.spec == spec else Seen(spec, now)


def is_held(seen: Seen, now: Duration, times: LeaseTimes) -> bool:
    """Return whether others must wait for its holder, if it has one."""
    said = seen.spec.lease_duration_seconds
    duration = times.lease_duration if said is None else seconds(said)
    return bool(seen.holder) and now < seen.since + duration


def claim(identity: str, seen: Seen | None, times: LeaseTimes, wall: Instant) -> Json:
    """Return the ``spec`` that acquires a lease, or renews the one of ``identity``.

    A new holder counts one transition more and notes when it began; renewing moves ``renewTime`` only.
    """
    stamp = format_rfc3339_micro(wall)
    renews = seen is not None and seen.holder == identity
    transitions = 0 if seen is None else (seen.spec.lease_transitions or 0) + (not renews)
    acquired = seen.spec.acquire_time if renews and seen is not None else None
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": times.lease_duration // seconds(1),
        "acquireTime": acquired or stamp,
        "renewTime": stamp,
        "leaseTransitions": transitions,
    }


def release(seen: Seen, wall: Instant) -> Json:
    """Return the ``spec`` that releases a lease, so that nobody has to wait for it."""
    stamp = format_rfc3339_micro(wall)
    return {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": stamp,
        "renewTime": stamp,
        "leaseTransitions": seen.spec.lease_transitions or 0,
    }
