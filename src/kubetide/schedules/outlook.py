"""Coming changes: intents for the board, and the answer of ``kubetide explain schedule``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from kubetide.explain.algorithm import StepCore
from kubetide.objects.kinds import HPAS
from kubetide.plan.board import ANNOUNCED, Intent, Workload
from kubetide.schedules.kinds.alibaba import is_new
from kubetide.schedules.kinds.base import is_hpa
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.state import State
from kubetide.schedules.tables import Bounds, Key, Progress, Rule, Table, Target
from kubetide.schedules.times.bounds import bounds_at, fewest, next_change, sizes
from kubetide.schedules.times.plans import Entry, Plan
from kubetide.schedules.times.points import followed
from kubetide.schedules.times.windows import demand, opening
from kubetide.units.time import Instant, after, format_rfc3339

SOURCE: Final = "schedules"
"""Who announces, on the board."""

_MOST_CHANGES: Final = 20
"""Of one table in that time."""


class Turn(NamedTuple):
    """A rule and when it begins or began."""

    rule: Rule
    at: Instant


def holding(state: State, key: Key, now: Instant) -> Turn | None:
    """Return the rule of a table that began last; None if none has begun since the table was created, or a job edited.

    Of rules that begin together it is the one that holds.
    """
    table, found = state.tables[key], []
    later = -1 if MODES[table.kind].first_only else 1
    submitted = {mark.rule.name: mark.at for mark in state.progress[key].marks if is_new(mark)}
    for place, entry in enumerate(state.plan(key).entries):
        if entry.calendar is None:
            continue
        last = entry.calendar.last(now, entry.off)
        if last is not None and last > submitted.get(entry.rule.name, table.created):
            found.append((last, later * place, entry.rule))
    if not found:
        return None
    at, _, rule = max(found, key=lambda one: one[:2])
    return Turn(rule, at)


def _followed(state: State, key: Key) -> list[Entry]:
    """Return the rules of a table that begin again: none while it is paused, and no job that has had its one run."""
    table, mode, plan = state.tables[key], MODES[key[0]], state.plan(key)
    if mode.windows:
        is_open = table.limits is not None and not table.limits.paused and not plan.warnings
        return list(plan.entries) if is_open else []
    if mode.bounds:
        return [entry for entry in plan.entries if entry.calendar is not None]
    return [plan.entries[place] for place, _ in followed(table, mode, plan, state.progress[key])]


def coming(
    state: State, key: Key, now: Instant, *, with_floor: bool = False, had: Collection[Rule] = ()
) -> Turn | None:
    """Return the rule of a table that begins next; None for none.

    Of rules that begin together it is the one that then holds.

    Args:
        with_floor: Only rules with a floor for an HPA.
        had: Rules that have begun by then: those with one run do not begin again.
    """
    found = []
    later = -1 if MODES[key[0]].first_only else 1
    for place, entry in enumerate(_followed(state, key)):
        if with_floor and _floor_of_hpa(entry.rule) is None:
            continue
        if entry.rule.once and entry.rule in had:
            continue
        due = entry.calendar.next(now, entry.off) if entry.calendar is not None else None
        if due is not None:
            found.append((due, -later * place, entry.rule))
    if not found:
        return None
    at, _, rule = min(found, key=lambda one: one[:2])
    return Turn(rule, at)


_MOST_TURNS: Final = 200
"""Of one rule; more are no longer read by people."""


def turns(state: State, now: Instant, until: Instant) -> list[tuple[Key, Turn, str]]:
    """Return all activations of tables between two times, each with its effect on the target."""
    found: list[tuple[Key, Turn, str]] = []
    for key in sorted(state.tables):
        table = state.tables[key]
        target = table.target
        for entry in _followed(state, key):
            at: Instant | None = now
            for _ in range(_MOST_TURNS):
                at = (
                    entry.calendar.next(at, entry.off)
                    if entry.calendar is not None and at is not None
                    else None
                )
                if at is None or at > until:
                    break
                found.append(
                    (
                        key,
                        Turn(entry.rule, at),
                        f"{target.kind} {target.name} gets {_said(entry.rule, table)}",
                    )
                )
                if entry.rule.once:
                    break
    return found


def _as_written(target: Target) -> str:
    return target.kind


def intents(state: State, now: Instant, kind_of: Callable[[Target], str] = _as_written) -> list[Intent]:
    """Return the intents of all tables, as ``Announcements``."""
    return Announcements(kind_of).of(state, now)


class Announcements:
    """The next change of each workload or HPA that a table sizes, and the rises in the hour after it, with due times.

    A table of an HPA sets bounds: the fewest replicas from then on. Which workload that is, the HPA's own loop knows, and
    whether the HPA follows. The same holds for a horizontal section, whose HPA has the name of the object.

    Args:
        kind_of: Returns the kind of a target as the cluster writes it, for others who look for it.
    """

    def __init__(self, kind_of: Callable[[Target], str]) -> None:
        self._kind_of = kind_of
        self._coming: dict[Key, _Coming] = {}

    def of(self, state: State, now: Instant) -> list[Intent]:
        """Return the intents at a time."""
        self._coming = {key: self._coming_of(state, key, now) for key in sorted(state.tables)}
        return [
            intent for key, one in self._coming.items() for intent in self._intents(state, key, one.changes)
        ]

    def _coming_of(self, state: State, key: Key, now: Instant) -> _Coming:
        """Return what was found last, unless the table or its progress has changed, or a rule has begun or ended."""
        plan, progress, known = state.plan(key), state.progress[key], self._coming.get(key)
        if known is not None and known.plan is plan and known.progress is progress and known.holds_at(now):
            return known
        entries = [entry for entry in _followed(state, key) if entry.calendar is not None]
        return _Coming(plan, progress, now, next_change(entries, now), _changes(state, key, now))

    def _intents(self, state: State, key: Key, changes: Sequence[_Change]) -> list[Intent]:
        table = state.tables[key]
        workload = Workload(table.target.namespace, self._kind_of(table.target), table.target.name)
        if MODES[table.kind].bounds and table.limits is not None and not sizes(table):
            workload = Workload(table.namespace, HPAS.kind, table.name)
        return [
            Intent(
                workload,
                change.replicas,
                change.at,
                SOURCE,
                why=f"{table.kind} {table.name}, {change.why}",
                sizes=change.by_itself,
            )
            for change in changes
        ]


class _Change(NamedTuple):
    """The fewest replicas from a time on, the rules that say so, and whether the table writes the size."""

    at: Instant
    replicas: int
    why: str
    by_itself: bool = True
    rule: Rule | None = None


class _Coming(NamedTuple):
    """The coming changes of a table, what they follow from, and between which times they are the same."""

    plan: Plan
    progress: Progress
    since: Instant
    until: Instant | None
    changes: Sequence[_Change]

    def holds_at(self, now: Instant) -> bool:
        """Return whether they are the same at a time; a clock may be set back."""
        return self.since <= now and (self.until is None or now < self.until)


def _changes(state: State, key: Key, now: Instant) -> list[_Change]:
    """Return the next change of a table's size or floor, and the rises that follow it within ``ANNOUNCED``."""
    found: list[_Change] = []
    had: list[Rule] = []
    at, before = now, 0
    for _ in range(_MOST_CHANGES):
        change = _next_rise(state, key, at) if MODES[key[0]].bounds else _next_size(state, key, at, had)
        if change is None or (found and change.at > after(found[0].at, ANNOUNCED)):
            break
        if not found or change.replicas > before:
            found.append(change)
        if change.rule is not None:
            had.append(change.rule)
        at, before = change.at, change.replicas
    return found


def _next_size(state: State, key: Key, now: Instant, had: Collection[Rule]) -> _Change | None:
    """Return the size or the minimum of the rule that begins next; None where the size stays."""
    table, plan = state.tables[key], state.plan(key)
    turn = coming(state, key, now, with_floor=is_hpa(table.target), had=had)
    if turn is None:
        return None
    size, by_itself = turn.rule.size, True
    if MODES[key[0]].windows:
        size = None if table.limits is None else demand(plan, table.limits, turn.at).replicas
    elif is_hpa(table.target):
        size, by_itself = _floor_of_hpa(turn.rule), turn.rule.minimum is None
    return None if size is None else _Change(turn.at, size, f"rule {turn.rule.name}", by_itself, turn.rule)


def _floor_of_hpa(rule: Rule) -> int | None:
    """Return the fewest replicas that a rule asks for by an HPA: beside bounds a size has no effect."""
    has_bounds = rule.minimum is not None or rule.maximum is not None
    return rule.minimum if has_bounds else rule.size


def _next_rise(state: State, key: Key, now: Instant) -> _Change | None:
    """Return the next beginning or end of a rule from which the floor is higher than before; None for none."""
    table, entries = state.tables[key], _followed(state, key)
    limits = table.limits
    starts = (one.calendar.next(now, one.off) for one in entries if one.calendar is not None)
    ends = (one.end.next(now) for one in entries if one.end is not None)
    floor = fewest(bounds_at(state.plan(key), now), limits)
    for at in sorted({one for one in (*starts, *ends) if one is not None}):
        held = bounds_at(state.plan(key), at)
        before, floor = floor, fewest(held, limits)
        if floor > before:
            rules = f"rule {', '.join(held.rules)}" if held.rules else "its own minimum"
            return _Change(at, floor, rules, limits is None or sizes(table))
    return None


def lines(core: StepCore[State], subject: str, now: Instant, view: str) -> list[str]:
    """Return which rules apply in the tables of that name, since when, and the next change. Raises KeyError if unknown."""
    del view
    state = core.state
    namespace, _, name = subject.partition("/")
    keys = [key for key in sorted(state.tables) if key[1:] == (namespace, name)]
    if not keys:
        raise KeyError(subject)
    return [line for key in keys for line in _lines_of(state, key, now)]


def names(core: StepCore[State]) -> list[str]:
    """Return the names of all time tables."""
    return sorted({f"{namespace}/{name}" for _, namespace, name in core.state.tables})


def targets(core: StepCore[State]) -> dict[str, str]:
    """Return the workload that each time table changes, ``KIND/NAMESPACE/NAME``, by the table's name."""
    return {
        f"{key[1]}/{key[2]}": f"{table.target.kind}/{table.target.namespace}/{table.target.name}"
        for key, table in sorted(core.state.tables.items())
    }


def _lines_of(state: State, key: Key, now: Instant) -> list[str]:
    table, plan = state.tables[key], state.plan(key)
    target = f"{table.target.kind} {table.target.name}"
    found = [f"{table.kind} changes {target}, in the time zone {state.settings.schedules_zone}"]
    if MODES[table.kind].bounds:
        found = [f"{table.kind} bounds {target}", *_bounds_lines(plan, now)]
    elif MODES[table.kind].windows:
        found += _window_lines(state, table, now)
    else:
        held, next_one = holding(state, key, now), coming(state, key, now)
        failing = held is not None and any(one.due == held.at for one in state.progress[key].attempts)
        found.append(
            "no rule has begun since it was created"
            if held is None
            else f"due since {format_rfc3339(held.at)}, and not carried out yet: {_said(held.rule, table)}"
            if failing
            else f"since {format_rfc3339(held.at)} holds {_said(held.rule, table)}"
        )
        found.append(
            "nothing comes next"
            if next_one is None
            else f"at {format_rfc3339(next_one.at)} comes {_said(next_one.rule, table)}"
        )
    progress = state.progress[key]
    found += [f"{mark.rule.name}: {mark.state} {mark.message}".rstrip() for mark in progress.marks]
    found += [
        f"try {one.count} failed: {one.error}; again at {format_rfc3339(one.again)}"
        for one in progress.attempts
    ]
    return found + [f"warning: {text}" for text in progress.warned or plan.warnings]


def _window_lines(state: State, table: Table, now: Instant) -> list[str]:
    plan, limits = state.plan(table.key), table.limits
    if plan.warnings or limits is None:
        return ["it is not followed"]
    found = []
    for entry in plan.entries:
        one = opening(entry, now)
        word = f"open, {entry.rule.size} replicas" if one.active else "closed"
        since = f" since {format_rfc3339(one.since)}" if one.since is not None else ""
        until = f" until {format_rfc3339(one.until)}" if one.until is not None else ""
        found.append(f"{entry.rule.schedule} to {entry.rule.end} ({entry.rule.zone}): {word}{since}{until}")
    asked = demand(plan, limits, now)
    stays = "the size stays as it is" if asked.replicas is None else f"together {asked.replicas} replicas"
    pauses = limits.paused or limits.paused_at is not None
    return [*found, f"paused by its annotation: {stays}" if pauses else stays]


def _bounds_lines(plan: Plan, now: Instant) -> list[str]:
    held = bounds_at(plan, now)
    found = [f"now: {_bounds_text(held)}"]
    if held.next is None:
        return [*found, "nothing comes next"]
    return [*found, f"from {format_rfc3339(held.next)} on: {_bounds_text(bounds_at(plan, held.next))}"]


def _bounds_text(bounds: Bounds) -> str:
    sides = (("at least", bounds.minimum), ("at most", bounds.maximum))
    said = " and ".join(f"{word} {size}" for word, size in sides if size is not None)
    return f"{said} replicas, by {', '.join(bounds.rules)}" if said else "no rule holds"


def _said(rule: Rule, table: Table) -> str:
    low, high = ("none" if one is None else one for one in (rule.minimum, rule.maximum))
    # Beside the bounds of an HPA a size has no effect.
    has_bounds = rule.minimum is not None or rule.maximum is not None
    bounds = rule.size is None or (is_hpa(table.target) and has_bounds)
    what = f"bounds {low} to {high}" if bounds else "1 replica" if rule.size == 1 else f"{rule.size} replicas"
    return f"{rule.name or 'the rule'} ({rule.schedule}): {what}"
