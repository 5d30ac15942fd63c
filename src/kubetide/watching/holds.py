"""Why a cache allows no removals: it may be stale, or lack existing objects."""

from __future__ import annotations

from typing import Any, Protocol

from kubetide.units.time import Duration, Instant, after, format_duration, format_rfc3339
from kubetide.watching.informer import Informer


class HoldSettings(Protocol):
    """The flags of the same names."""

    @property
    def max_cache_age(self) -> Duration: ...

    @property
    def max_relist_loss(self) -> float: ...

    @property
    def relist_hold(self) -> Duration: ...


def holds_of(
    informer: Informer[Any], now: Instant, settings: HoldSettings, *, may_be_old: bool = True
) -> tuple[str, ...]:
    """Return why a cache allows no removals, one sentence each.

    Args:
        may_be_old: Whether its age counts. A cache of the same process is not old while its watch is open, however quiet the cluster is.
    """
    old = _too_old(informer, now, settings.max_cache_age) if may_be_old else ""
    shrunken = _shrunken(informer, now, settings.max_relist_loss, settings.relist_hold)
    return tuple(filter(None, (old, shrunken)))


def _too_old(informer: Informer[Any], now: Instant, max_cache_age: Duration) -> str:
    """Return a sentence for a cache that got nothing for longer, not even a bookmark; empty for another."""
    received = informer.last_received
    if received is None:
        return f"{informer.kind.plural} have never been listed; nothing is taken away until they are"
    if after(received, max_cache_age) < now:
        return (
            f"nothing was heard about {informer.kind.plural} since {format_rfc3339(received)} (max-cache-age "
            f"{format_duration(max_cache_age)}); nothing is taken away until something is"
        )
    return ""


def _shrunken(informer: Informer[Any], now: Instant, max_relist_loss: float, relist_hold: Duration) -> str:
    """Return a sentence for a cache that lost more than that share by a new list, not long ago; empty for another."""
    relist = informer.last_relist
    if relist is None or after(relist.at, relist_hold) < now:
        return ""
    if relist.lost > max_relist_loss * relist.before:
        share = round(100 * relist.lost / relist.before)
        return (
            f"a new list of {informer.kind.plural} at {format_rfc3339(relist.at)} lacked {relist.lost} of "
            f"{relist.before} ({share} %, max-relist-loss {round(100 * max_relist_loss)} %); nothing is taken away until "
            f"{format_rfc3339(after(relist.at, relist_hold))}"
        )
    return ""
