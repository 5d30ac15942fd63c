"""The interface of a kind of time table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.tables import Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.plans import Forms, Plan
from kubetide.units.time import Duration, Instant, instant_of

HPA = "horizontalpodautoscaler"


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """How a kind is followed.

    Attributes:
        kind: Where it is served.
        forms: Of its schedules.
        read: Returns a table; raises nothing, what cannot be read is in ``refused``.
        change: Returns what a rule makes of its target.
        report: Returns the mark and the events after a run: of the table, the rule, the run, the error (empty for
            none), whether it is tried again, and the time.
        status: Returns the status to write, None for none.
        submit: Returns the marks after the table has changed; None for kinds that have no marks.
        tries: How often a change is tried; 0 for as often as it takes.
        pause: Between two tries.
        first_only: Whether of rules that are due together the first listed alone is followed.
        by_rule: Whether each rule counts its activations for itself.
        windows: Whether the rules are windows that decide together, again and again.
        ours: Returns whether an object is for this loop; one that is not might as well not be there.
        bounds: Whether the rules are floors and ceilings that hold together (``schedules.bounds``).
    """

    kind: Kind[Any]
    forms: Forms
    read: Callable[[Any], Table]
    change: Callable[[Table, Rule, View], Change]
    report: Callable[[Table, Rule, Run, str, bool, Instant], tuple[Mark | None, Sequence[Notice]]]
    status: Callable[[Table, Progress], Json | None]
    submit: Callable[[Table, Plan, Progress, Instant], Progress] = lambda _table, _plan, progress, _now: (
        progress
    )
    tries: int = 0
    pause: Duration
    first_only: bool = False
    by_rule: bool = False
    windows: bool = False
    bounds: bool = False
    ours: Callable[[Any], bool] = lambda _found: True


def is_hpa(target: Target) -> bool:
    """Return whether a target is an HPA, of any version."""
    return target.kind.lower() == HPA and target.api_version.partition("/")[0] == "autoscaling"


def group_of(target: Target) -> str:
    """Return the API group of a target."""
    return target.api_version.rpartition("/")[0]


def created_at(text: str | None) -> Instant:
    """Return when an object was created; 1970 if that is unknown, or earlier."""
    found = instant_of(text)
    return Instant(0) if found is None or found < 0 else found


def to_size(table: Table, rule: Rule, view: View, *, of_an_hpa: str) -> Change:
    """Return the change of the target to the rule's size; without a write if it has that size already.

    Args:
        table, rule, view: The table, its rule that is due, and what was read of the target.
        of_an_hpa: The error where the target is an HPA, which has no scale.
    """
    if view.error:
        return Change(table.target, error=view.error, stage=view.stage)
    if view.hpa is not None:
        return Change(table.target, error=of_an_hpa, stage="get")
    same = view.replicas == rule.size
    return Change(
        table.target,
        replicas=None if same else rule.size,
        current=view.replicas,
        scale_version=view.resource_version,
    )
