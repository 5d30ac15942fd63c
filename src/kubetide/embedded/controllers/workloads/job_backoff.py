"""How long a Job makes no pods after some have failed.

Source: kube-controller-manager v1.36, pkg/controller/job/backoff_utils.go: 10 s after the end of the last pod that
failed, twice as long for each failure in a row, at most 10 minutes; a success begins the count anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetide.objects.pod import Pod, pod_condition
from kubetide.units.time import Duration, Instant, after, before, minutes, parse_rfc3339, seconds

_FIRST_PAUSE = seconds(10)
_LONGEST_PAUSE = minutes(10)


def backoff_of(failures_in_a_row: int) -> Duration:
    """Return how long no new pod is made after a failure."""
    if failures_in_a_row <= 0:
        return Duration(0)
    return Duration(min(_FIRST_PAUSE << min(failures_in_a_row - 1, 10), _LONGEST_PAUSE))


class Failures(NamedTuple):
    """How many pods of a Job have failed since the last success, and when the last of them ended."""

    in_a_row: int = 0
    last: Instant = Instant(0)

    def with_ends(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> Failures:
        """Return the failures with the pods whose end is noticed now."""
        if not succeeded and not failed:
            return self
        count, ends = self.in_a_row, sorted(finished_at(pod) for pod in failed)
        if succeeded:
            last_success = max(finished_at(pod) for pod in succeeded)
            count, ends = 0, [end for end in ends if end > last_success]
        return Failures(count + len(ends), ends[-1]) if ends else Failures()

    def due(self) -> Instant:
        """Return from when on pods may be made."""
        return after(self.last, backoff_of(self.in_a_row))


def finished_at(pod: Pod) -> Instant:
    """Return when a pod ended: as its containers say, else when it ceased to be ready, was deleted, or was made."""
    ends = [
        status.state.terminated.finished_at if status.state and status.state.terminated else None
        for status in pod.status.container_statuses or ()
    ]
    known = [end for end in ends if end]
    if known and len(known) == len(ends):
        return max(parse_rfc3339(end) for end in known)
    ready = pod_condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return parse_rfc3339(ready.last_transition_time)
    meta = pod.metadata
    if meta.deletion_timestamp:
        return before(
            parse_rfc3339(meta.deletion_timestamp), seconds(meta.deletion_grace_period_seconds or 0)
        )
    return parse_rfc3339(meta.creation_timestamp) if meta.creation_timestamp else Instant(0)
