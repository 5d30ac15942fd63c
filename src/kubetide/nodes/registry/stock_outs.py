"""Offers that were out of stock lately, shared by all groups that buy them (``--stock-out-memory``).

An offer is an instance type in a zone on a market. After a shortage it is not asked for during
``--stock-out-memory``; after another one within twice that time for twice as long, up to four times. Several reports
of one shortage count once. Each counts less as time passes: without a new one the next begins at the shortest time
again. For pods that no other group takes it is asked for again once a group that failed would be
(``--initial-node-group-backoff-duration``).

Beyond Cluster Autoscaler, which only backs off the group that failed; off by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.explain.reasons import Reason
from kubetide.nodes.memory import StockOut
from kubetide.nodes.reasons import reason
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.nodes.templates.amounts import INSTANCE_TYPE_LABELS
from kubetide.ports.cloud import NodeGroup, market_of
from kubetide.ports.errors import CloudCause
from kubetide.units.time import Duration, Instant, after, format_rfc3339

_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_LONGEST: Final = 4
"""Times ``--stock-out-memory``."""


def offers_of(group: NodeGroup) -> tuple[str, ...]:
    """Return the offers that may provide the group's next node, as ``type zone market``, in order; none if unknown."""
    labels = {} if group.template is None else group.template.node.metadata.labels or {}
    kind = next((labels[name] for name in INSTANCE_TYPE_LABELS if name in labels), "")
    zone = next((labels[name] for name in _ZONE_LABELS if name in labels), "")
    open_offers = [one for one in group.offerings or () if one.share != 0 and one.count != 0]
    found = [(one.instance_type or kind, one.zone or zone, one.market) for one in open_offers]
    named = [" ".join(filter(None, one)) for one in found or [(kind, zone, market_of(labels))] if one[0]]
    return tuple(sorted(dict.fromkeys(named)))


def note_shortage(state: State, group_id: str, cause: CloudCause, now: Instant) -> list[Reason]:
    """Note that all offers of a group are out of stock; return the reasons, none if the cloud failed otherwise."""
    memory, settings = state.memory, state.settings
    if not settings.stock_out_memory or cause != "OutOfCapacity":
        return []
    reasons = []
    for offer in offers_of(state.groups[group_id]):
        before = memory.stock_outs.get(offer)
        times = _times_after(before, settings.stock_out_memory, now)
        until = after(now, Duration(times * settings.stock_out_memory))
        memory.stock_outs = {**memory.stock_outs, offer: StockOut(times, until, now, group_id)}
        reasons.append(reason("OutOfStock", offer, group=group_id, until=format_rfc3339(until)))
    return reasons


def _times_after(before: StockOut | None, shortest: Duration, now: Instant) -> int:
    """Return for how many times the shortest time a new shortage counts.

    One that is reported while the offer is not asked for belongs to what was asked for before: machines fail one by one.
    """
    if before is None or after(before.until, Duration(2 * shortest)) < now:
        return 1
    return before.times if before.until > now else min(2 * before.times, _LONGEST)


def is_out_of_stock(state: State, group: NodeGroup, now: Instant) -> bool:
    """Return whether every offer for the group's next node is out of stock."""
    if not state.memory.stock_outs:
        return False
    offers = offers_of(group)
    return bool(offers) and all(_is_out(state, offer, now) for offer in offers)


def may_be_tried(state: State, group: NodeGroup, now: Instant) -> bool:
    """Return whether a group that is out of stock may be asked for pods that no other group takes."""
    return tried_again(state.memory.stock_outs, group, state.settings)[1] <= now


def tried_again(
    shortages: Mapping[str, StockOut], group: NodeGroup, settings: Settings
) -> tuple[str, Instant]:
    """Return which offer of a group that is out of stock is tried again first, and from when on, for pods that no other group takes."""
    offer = min(offers_of(group), key=lambda one: (shortages[one].seen_at, one))
    return offer, after(shortages[offer].seen_at, settings.initial_node_group_backoff_duration)


def out_of_stock_texts(state: State, group: NodeGroup, now: Instant) -> list[str]:
    """Return, per offer that is out of stock: since when, which group saw it, and until when others are preferred.

    Of a group that has another offer: that the group still grows.
    """
    offers = offers_of(group)
    out = [offer for offer in offers if _is_out(state, offer, now)]
    return [_text(state, offer, now, has_others=len(out) < len(offers)) for offer in out]


def _text(state: State, offer: str, now: Instant, *, has_others: bool) -> str:
    entry = state.memory.stock_outs[offer]
    seen = f"out of stock at {format_rfc3339(entry.seen_at)} in group {entry.group}"
    if has_others:
        return f"{offer} was {seen}; the group is still asked for nodes, as it has other offers"
    again = after(entry.seen_at, state.settings.initial_node_group_backoff_duration)
    last = f"until {format_rfc3339(entry.until)} only for pods that no other group takes"
    # The times come first: the end of a row of a table is cut.
    if again <= now:
        return f"{offer} is asked for {last}: {seen}"
    return f"{offer} is not asked for before {format_rfc3339(again)}, and {last}: {seen}"


def forget_old_shortages(state: State, now: Instant) -> None:
    """Forget offers whose last shortage no longer matters."""
    held, keep = state.memory.stock_outs, Duration(2 * state.settings.stock_out_memory)
    if held:
        state.memory.stock_outs = {offer: one for offer, one in held.items() if after(one.until, keep) >= now}


def _is_out(state: State, offer: str, now: Instant) -> bool:
    entry = state.memory.stock_outs.get(offer)
    return entry is not None and entry.until > now
