"""Runs all checks."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.doctor.finding import SEVERITIES, Finding
from kubetide.doctor.registry import CHECKS, Check
from kubetide.doctor.snapshot import Snapshot


def diagnose(snapshot: Snapshot, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    """Return the findings of all checks, worst first, then in the order of the checks and by object.

    What could not be read, and a check that fails on an object that cannot be read, are findings as well.
    """
    found = [finding for check in checks for finding in _asked(check, snapshot)]
    found += [_unread(plural, why) for plural, why in sorted(snapshot.unread.items())]
    found += [_unread_object(name, why) for name, why in sorted(snapshot.unread_objects.items())]
    places = {check.name: place for place, check in enumerate(checks)}
    return tuple(
        sorted(
            found,
            key=lambda one: (
                SEVERITIES.index(one.severity),
                places.get(one.check, len(places)),
                -(one.cost_per_hour or 0.0),
                one.object,
                one.seen,
            ),
        )
    )


def _asked(check: Check, snapshot: Snapshot) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(check.find(snapshot))
    except (ValueError, KeyError, AssertionError) as error:
        # An object that no rule understands: the other checks are asked all the same.
        found.append(
            Finding(
                check=check.name,
                severity="info",
                object="the check itself",
                seen=f"it ended early: {type(error).__name__}: {error}",
                why="some of its findings may be missing",
                fix="correct the object that the message names",
            )
        )
    return found


def _unread_object(name: str, why: str) -> Finding:
    return Finding(
        check="unread",
        severity="warning",
        object=name,
        seen=f"it cannot be read: {why}",
        why="no loop follows it, or only as it was before",
        fix="write that field as its kind has it",
    )


def _unread(plural: str, why: str) -> Finding:
    return Finding(
        check="unread",
        severity="info",
        object=plural,
        seen=f"they could not be read: {why}",
        why="what they would show is not found",
        fix=f"grant list on {plural}, or leave it where the cluster does not serve them",
    )
