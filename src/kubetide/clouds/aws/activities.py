"""Why a group lacks machines: what its newest scaling activities say.

Source: cluster-autoscaler (Aug 2026), AWS provider, placeholders of instances that cannot be had. Upstream has
one class for every cause; here the text of the activity distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kubetide.clouds.aws.errors import cause_of_message
from kubetide.objects.base import Json
from kubetide.ports.cloud import InstanceError
from kubetide.units.time import Instant, parse_rfc3339

UNFULFILLABLE: Final = "placeholder-cannot-be-fulfilled"
MESSAGE: Final = "AWS cannot provision any more instances for this node group"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Shortage(NamedTuple):
    """Why a group lacks machines, as far as activities say, and what kept them from saying it."""

    error: InstanceError | None = None
    warning: str = ""


def unknown_shortage(error: Exception) -> Shortage:
    """Return what holds of a group whose activities cannot be read: upstream takes it to have no shortage."""
    return Shortage(
        warning="why machines do not come cannot be read, so a stock-out counts only after "
        f"--max-node-provision-time: {error}"
    )


def shortage(activities: Iterable[Json], since: Instant | None) -> InstanceError | None:
    """Return why machines do not come; None while no activity has failed.

    Args:
        activities: Newest first.
        since: When we last changed the group's size; older activities do not count. None counts all.
    """
    for activity in activities:
        if since is not None and _start(activity.get("StartTime")) < since:
            return None
        if activity.get("StatusCode") == "Failed":
            return _error(activity.get("StatusMessage") or "")
    return None


def _error(message: str) -> InstanceError:
    cause = cause_of_message(message)
    if cause is None:
        text = f"{MESSAGE}: {message}" if message else MESSAGE
        return InstanceError(
            error_class="OutOfResource", error_code=UNFULFILLABLE, error_message=text, cause="OutOfCapacity"
        )
    fits_elsewhere = cause.cause in {"OutOfCapacity", "Quota"}
    return InstanceError(
        error_class="OutOfResource" if fits_elsewhere else "Other",
        error_code=cause.code,
        error_message=message,
        cause=cause.cause,
    )


def _start(value: Any) -> Instant:
    """Return the time of an activity: boto3 gives a datetime, a recording its text."""
    if isinstance(value, datetime):
        # Whole microseconds: a float of seconds would lose them.
        elapsed = value.astimezone(UTC) - _EPOCH
        return Instant(((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds) * 1000)
    return parse_rfc3339(value) if value else Instant(0)
