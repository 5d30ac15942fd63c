"""Which rules are due, their changes of targets, and the events about them.

What a table asks for is a function of time: the last activation of any of its rules. An activation that was
missed is made up for as soon as the loop looks, unless later ones have set the same anew; so after any outage the
table stands where it would stand without one. Between two activations nothing is corrected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.schedules.clock_rollback import is_ahead, step_warnings, without_future
from kubetide.schedules.decision import Change, Commands, Notice, Outcome, Result, Run, view_after
from kubetide.schedules.kinds.alibaba import skipped
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.reasons import VOCABULARY
from kubetide.schedules.state import State
from kubetide.schedules.tables import LATE, Attempt, Bounds, Key, Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.bounds import bounds_at, sizes
from kubetide.schedules.times.points import Due, following, look
from kubetide.schedules.times.windows import demand
from kubetide.schedules.warnings import INVALID, warnings_of
from kubetide.units.time import Instant, after, format_rfc3339

WINDOWS = -1
"""The place of the rule that the windows of a table make together."""


def targets_due(state: State, now: Instant) -> list[Target]:
    """Return the targets that ``decide`` needs at that time, sorted."""
    found = set()
    for key in keys_due(state, now):
        table, mode, plan = state.tables[key], MODES[key[0]], state.plan(key)
        if mode.bounds:
            if plan.entries and sizes(table):
                found.add(table.target)
            continue
        if mode.windows:
            if not plan.warnings:
                found.add(table.target)
            continue
        progress = mode.submit(table, plan, without_future(table, state.progress[key], now), now)
        if look(table, mode, plan, progress, now).tries:
            found.add(table.target)
    return sorted(found)


def keys_due(state: State, now: Instant) -> list[Key]:
    """Return the tables to evaluate, sorted: all of them where the clock was set back since they were looked at."""
    if is_ahead(state.looked, now):
        return sorted(state.tables)
    return sorted(key for key, due in state.due.items() if due <= now)


def next_due(state: State) -> Instant | None:
    """Return when to evaluate a table next; None for never."""
    return min(state.due.values(), default=None)


def decide(state: State, now: Instant) -> Commands:
    """Return what is due: changes of targets, and tables whose progress changes without one."""
    commands = _Commands(state.views, now)
    for key in keys_due(state, now):
        table, mode, plan = state.tables[key], MODES[key[0]], state.plan(key)
        before = state.progress[key]
        progress = mode.submit(table, plan, without_future(table, before, now), now)
        ahead = () if mode.windows else step_warnings(before, now)
        progress = commands.warn(table, progress, (*warnings_of(state, table, plan, progress), *ahead))
        if mode.bounds:
            progress = commands.follow_bounds(state, table, progress)
        elif mode.windows:
            progress = commands.follow_windows(state, table, progress)
        else:
            found = look(table, mode, plan, progress, now)
            progress = commands.follow_points(table, progress, found)
        if progress != before:
            commands.progress[key] = progress
    return commands.made()


def absorb(state: State, commands: Commands, outcomes: Sequence[Outcome], now: Instant) -> Result:
    """Apply the outcomes of the runs; return the statuses to write, the events, and the reasons."""
    progress = dict(commands.progress)
    notices, reasons = list(commands.notices), list(commands.reasons)
    for run, outcome in zip(commands.runs, outcomes, strict=True):
        table, mode = state.tables[run.table], MODES[run.table[0]]
        known = progress.get(run.table, state.progress[run.table])
        if outcome.withheld:
            reasons.append(_reason(run, "only advised"))
            progress[run.table] = _touched(replace(known, last=now), run.rule, "only advised", now)
            continue
        if pending := outcome.pending or (run.change.error if run.change.stage == LATE else ""):
            # No try that failed: the target is read again after the pause, and shows what has become of the write.
            reasons.append(_reason(run, "", pending))
            again = Attempt(run.place, run.due, run.count - 1, after(now, mode.pause), pending)
            progress[run.table] = replace(known, attempts=(*known.attempts, again))
            continue
        error = run.change.error or outcome.error
        mark, more = mode.report(table, run.rule, run, error, bool(error), now)
        notices += more
        reasons.append(_reason(run, error))
        if error:
            unread = bool(run.change.error)
            again = Attempt(run.place, run.due, run.count, after(now, mode.pause), error, unread)
            known = replace(known, attempts=(*known.attempts, again))
        elif mark is not None:
            known = _marked(known, mark)
        elif not (mode.windows or mode.bounds):
            left = tuple(one for one in known.attempts if not _overtakes(table, run, one))
            known = replace(known, last=now, attempts=left)
        progress[run.table] = known
    state.progress.update(progress)
    for key in {*keys_due(state, commands.now), *progress}:
        _look_again(state, key, now)
    state.looked = now
    return Result(tuple(_statuses(state, sorted(progress))), tuple(notices), tuple(reasons))


def _statuses(state: State, keys: Sequence[Key]) -> list[tuple[Key, msgspec.Raw]]:
    """Return the statuses that changed."""
    found = []
    for key in keys:
        status = MODES[key[0]].status(state.tables[key], state.progress[key])
        if status is None:
            continue
        raw = msgspec.json.encode(status)
        if state.statuses.get(key) != raw:
            state.statuses[key] = raw
            found.append((key, msgspec.Raw(raw)))
    return found


def _look_again(state: State, key: Key, now: Instant) -> None:
    table, mode, plan, progress = state.tables[key], MODES[key[0]], state.plan(key), state.progress[key]
    if mode.bounds:
        found = [one.again for one in progress.attempts]
        if plan.entries and sizes(table):
            found.append(after(now, mode.pause))
        if progress.bounds is not None and progress.bounds.next is not None:
            found.append(progress.bounds.next)
        _due(state, key, min(found, default=None))
        return
    if mode.windows:
        limits = table.limits
        assert limits is not None
        change = None if plan.warnings else demand(plan, limits, now).next
        poll = after(now, mode.pause)
        state.due[key] = poll if change is None else min(poll, change)
        return
    _due(state, key, following(table, mode, plan, progress, now))


def _due(state: State, key: Key, due: Instant | None) -> None:
    if due is None:
        state.due.pop(key, None)
    else:
        state.due[key] = due


class _Commands:
    """What is decided, table by table."""

    def __init__(self, views: Mapping[Target, View], now: Instant) -> None:
        self.now = now
        self.progress: dict[Key, Progress] = {}
        self._runs: list[Run] = []
        self._notices: list[Notice] = []
        self._reasons: list[Reason] = []
        self._views = views
        self._changed: dict[Target, View] = {}
        """Targets as the runs so far leave them: those that follow go by that."""

    def made(self) -> Commands:
        """Return it as one value."""
        return Commands(
            self.now,
            tuple(self._runs),
            tuple(self.progress.items()),
            tuple(self._notices),
            tuple(self._reasons),
        )

    def warn(self, table: Table, progress: Progress, warnings: tuple[str, ...]) -> Progress:
        """Report what is wrong with a table, each thing once."""
        for text in warnings:
            if text not in progress.warned:
                self._notices.append(Notice(table.key, "Warning", INVALID, text))
                self._reasons.append(VOCABULARY.reason("Warned", _named(table), why=text))
        return replace(progress, warned=warnings)

    def follow_points(self, table: Table, progress: Progress, due: Due) -> Progress:
        """Run what is due; return the progress that is made without a change of the target."""
        mode = MODES[table.kind]
        progress = replace(progress, attempts=due.waiting)
        for place, missed in due.superseded:
            rule = table.rules[place]
            self._say("Superseded", table, rule, missed)
            if mode.by_rule:
                message = f"due {format_rfc3339(missed)} and missed; a later job holds instead"
                progress = _touched(progress, rule, message, self.now)
        for place, left_out, expression in due.skipped:
            rule = table.rules[place]
            self._say("Excluded", table, rule, left_out, expression=expression)
            if mode.by_rule:
                mark, notice = skipped(table, rule, expression, left_out, self.now)
                progress = _marked(progress, mark)
                self._notices.append(notice)
        for lost in due.lost:
            rule = table.rules[lost.rule]
            change = Change(table.target, error=lost.error if lost.unread else "")
            run = Run(table.key, lost.rule, rule, lost.due, lost.count, table.target, change)
            lost_mark, more = mode.report(table, rule, run, lost.error, False, self.now)
            self._notices += more
            if lost_mark is not None:
                progress = _marked(progress, lost_mark)
        for one in due.tries:
            rule = table.rules[one.rule]
            change = mode.change(table, rule, self._view(table.target))
            self._run(Run(table.key, one.rule, rule, one.due, one.number, table.target, change))
        return progress

    def follow_windows(self, state: State, table: Table, progress: Progress) -> Progress:
        """Run what the open windows ask for together, unless something of the table cannot be read."""
        plan, limits = state.plan(table.key), table.limits
        assert limits is not None
        waiting = [one for one in progress.attempts if one.again > self.now]
        progress = replace(progress, attempts=tuple(waiting))
        if plan.warnings:
            return replace(progress, window_state="")
        asked = demand(plan, limits, self.now)
        if asked.replicas is not None and not waiting:
            rule = Rule("windows", "", size=asked.replicas)
            change = MODES[table.kind].change(table, rule, self._view(table.target))
            if change.writes or change.error:
                self._run(Run(table.key, WINDOWS, rule, self.now, 1, table.target, change))
        return replace(progress, last=asked.last_active, window_state=asked.window_state)

    def follow_bounds(self, state: State, table: Table, progress: Progress) -> Progress:
        """Note what the rules ask for together; bring the size within it where no autoscaler of the object does."""
        plan, target = state.plan(table.key), table.target
        waiting = [one for one in progress.attempts if one.again > self.now]
        progress = replace(progress, attempts=tuple(waiting))
        held = bounds_at(plan, self.now) if plan.entries else None
        named = ", ".join(held.rules) if held is not None else ""
        if held is not None and _without_next(held) != _without_next(progress.bounds):
            shown = {"minimum": _shown(held.minimum), "maximum": _shown(held.maximum)}
            said = {"rule": named or "no rule", "due": format_rfc3339(self.now), **shown}
            reason = VOCABULARY.reason(
                "Bounded", _named(table), target=f"{target.kind} {target.name}", **said
            )
            self._reasons.append(reason)
        # After a window that set none, an autoscaler that does not scale to zero itself never comes back by itself.
        own = table.limits is not None and table.limits.minimum > 0
        if held is not None and (held.rules or own) and sizes(table) and not waiting:
            rule = Rule(named or "no rule", "", minimum=held.minimum, maximum=held.maximum)
            change = MODES[table.kind].change(table, rule, self._view(target))
            if change.writes or change.error:
                self._run(Run(table.key, WINDOWS, rule, self.now, 1, target, change))
        return replace(progress, bounds=held)

    def _run(self, run: Run) -> None:
        self._runs.append(run)
        if run.change.writes:
            self._changed[run.target] = view_after(self._view(run.target), run.change)

    def _view(self, target: Target) -> View:
        known = self._changed.get(target) or self._views.get(target)
        return known or View(target, error="it has not been read", stage="get")

    def _say(self, code: str, table: Table, rule: Rule, due: Instant, **fields: str) -> None:
        named = rule.name or rule.schedule
        self._reasons.append(
            VOCABULARY.reason(code, _named(table), rule=named, due=format_rfc3339(due), **fields)
        )


def _without_next(bounds: Bounds | None) -> Bounds | None:
    return None if bounds is None else replace(bounds, next=None)


def _shown(bound: int | None) -> str:
    return "none" if bound is None else str(bound)


def _named(table: Table) -> str:
    return f"{table.namespace}/{table.name}"


def _marked(progress: Progress, mark: Mark) -> Progress:
    marks = tuple(mark if one.rule.name == mark.rule.name else one for one in progress.marks)
    return replace(progress, marks=marks)


def _overtakes(table: Table, run: Run, attempt: Attempt) -> bool:
    """Return whether a run has made what would only be undone by trying an earlier rule again."""
    earlier, later = table.rules[attempt.rule], run.rule
    sides = (
        (earlier.size, later.size),
        (earlier.minimum, later.minimum),
        (earlier.maximum, later.maximum),
    )
    covers = all(before is None or now is not None for before, now in sides)
    return covers and (attempt.due, attempt.rule) < (run.due, run.place)


def _touched(progress: Progress, rule: Rule, message: str, now: Instant) -> Progress:
    """Return the progress with a rule's activations dealt with up to now, its state as it was."""
    marks = tuple(
        replace(one, message=message, at=now) if one.rule.name == rule.name else one for one in progress.marks
    )
    return replace(progress, marks=marks)


def _reason(run: Run, error: str, pending: str = "") -> Reason:
    change, (_, namespace, name) = run.change, run.table
    subject = f"{namespace}/{name}"
    target = f"{run.target.kind} {run.target.name}"
    named, due = run.rule.name or run.rule.schedule, format_rfc3339(run.due)
    if pending:
        return VOCABULARY.reason("Pending", subject, rule=named, target=target, why=pending)
    if error:
        return VOCABULARY.reason("Refused", subject, rule=named, target=target, count=run.count, error=error)
    if change.replicas is not None:
        return VOCABULARY.reason(
            "Sized", subject, rule=named, due=due, target=target, current=change.current, size=change.replicas
        )
    if change.minimum is not None or change.maximum is not None:
        return VOCABULARY.reason(
            "Bounded",
            subject,
            rule=named,
            due=due,
            target=target,
            minimum=change.minimum,
            maximum=change.maximum,
        )
    why = change.note or f"it has {change.current} replicas"
    return VOCABULARY.reason("Left", subject, rule=named, due=due, target=target, why=why)
