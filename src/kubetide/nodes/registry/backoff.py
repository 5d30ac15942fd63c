"""Backoff of groups whose scale-up failed.

Source: Cluster Autoscaler's exponential backoff: the first failure leaves a group out for 5 minutes;
a failure after the former backoff has ended doubles the time up to 30 minutes; a failure while it
lasts starts the same time anew; 3 hours after the last failure all is forgotten.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.decision import Outcome
from kubetide.nodes.memory import BackoffEntry
from kubetide.nodes.settings import Settings
from kubetide.units.time import Duration, Instant, after


def start_backoff(
    entry: BackoffEntry | None,
    now: Instant,
    settings: Settings,
    *,
    error_class: str,
    error_code: str,
    error_message: str,
) -> BackoffEntry:
    """Return the entry of a group that has just failed; ``entry`` is the previous one."""
    duration = settings.initial_node_group_backoff_duration
    if entry is not None:
        duration = entry.duration
        if entry.until < now:
            duration = Duration(min(2 * entry.duration, settings.max_node_group_backoff_duration))
    return BackoffEntry(
        duration=duration,
        until=after(now, duration),
        last_failure=now,
        error_class=error_class,
        error_code=error_code,
        error_message=error_message,
    )


def backoff_after_refusal(
    entry: BackoffEntry | None, now: Instant, settings: Settings, outcome: Outcome, *, message: str
) -> BackoffEntry:
    """Return the entry of a group of which the cloud has refused a change.

    As upstream its code is the type of the error; the cloud's own code is in the message.
    """
    entry = start_backoff(
        entry, now, settings, error_class="Other", error_code=outcome.error_type, error_message=message
    )
    return replace(entry, cause=outcome.cause)


def is_backed_off(entry: BackoffEntry | None, now: Instant) -> bool:
    """Return whether the group must not be asked now."""
    return entry is not None and entry.until > now


def drop_stale(entries: dict[str, BackoffEntry], now: Instant, settings: Settings) -> dict[str, BackoffEntry]:
    """Return the entries without those whose last failure is long ago."""
    reset = settings.node_group_backoff_reset_timeout
    return {group: entry for group, entry in entries.items() if after(entry.last_failure, reset) >= now}
