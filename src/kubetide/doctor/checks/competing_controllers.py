"""Other controllers for the same objects."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.runtime.handover.ownership import is_own
from kubetide.units.time import (
    Instant,
    TimeFormatError,
    after,
    between,
    format_duration,
    minutes,
    parse_rfc3339,
    seconds,
)

_SHOWN = 3
_RECENT = minutes(10)
"""Entries of ``managedFields`` stay after a handover; two this young are of two controllers at work."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the HPAs that two controllers write, the split of HPAs between controllers, and node autoscalers at work."""
    newest = {one.hpa: one for one in sorted(snapshot.servers, key=lambda one: one.at)}
    managers: dict[str, list[str]] = {}
    for one in newest.values():
        managers.setdefault(one.manager, []).append("/".join(one.hpa))
    by_hpa: dict[tuple[str, str], list[str]] = {}
    for one in snapshot.servers:
        if between(one.at, snapshot.now) <= _RECENT:
            by_hpa.setdefault(one.hpa, []).append(one.manager)
    for (namespace, name), writers in sorted(by_hpa.items()):
        if len(set(writers)) > 1:
            yield Finding(
                check="competing-controllers",
                severity="critical",
                object=f"HorizontalPodAutoscaler {namespace}/{name}",
                seen=f"its status was written within {format_duration(_RECENT)} by {' and '.join(sorted(set(writers)))}",
                why="two controllers that scale one target undo each other's work",
                fix=f"switch one of them off; `kubetide handover {namespace}/{name}` shows and moves who serves it",
            )
    if any(map(is_own, managers)):
        for manager, hpas in sorted(managers.items()):
            if not is_own(manager):
                yield Finding(
                    check="competing-controllers",
                    severity="info",
                    object=f"controller {manager}",
                    seen=f"it serves {len(hpas)} {'HPA' if len(hpas) == 1 else 'HPAs'} ({', '.join(sorted(hpas)[:_SHOWN])}), and kubetide serves others",
                    why="kubetide leaves them alone until they are handed over",
                    fix="`kubetide handover --to kubetide --wait 10m` moves them",
                )
    holders = [
        f"{one.metadata.namespace}/{one.metadata.name} ({one.spec.holder_identity})"
        for one in snapshot.leases
        if one.spec.holder_identity
        and _is_held(one.spec.renew_time, one.spec.lease_duration_seconds, snapshot.now)
    ]
    if len(holders) > 1:
        yield Finding(
            check="competing-controllers",
            severity="critical",
            object="node autoscalers",
            seen=f"{len(holders)} are at work, by their Leases: {', '.join(sorted(holders))}",
            why="one buys nodes that the other removes",
            fix="run one, or give each node groups of its own",
        )


def _is_held(renewed: str | None, lasts_s: int | None, now: Instant) -> bool:
    try:
        return now <= after(parse_rfc3339(renewed or ""), seconds(lasts_s or 0))
    except TimeFormatError:
        return False
