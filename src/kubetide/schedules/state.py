"""The state of the time-table loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.settings import Settings
from kubetide.schedules.tables import Attempt, Delta, Identity, Key, Progress, Rule, Table, Target, View
from kubetide.schedules.times.bounds import checked, with_meetings
from kubetide.schedules.times.plans import Plan, plan_of
from kubetide.schedules.times.windows import refused_windows
from kubetide.units.time import Instant


class State:
    """All time tables, their progress, and when each is evaluated next."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.tables: dict[Key, Table] = {}
        self.progress: dict[Key, Progress] = {}
        self.views: dict[Target, View] = {}
        self.due: dict[Key, Instant] = {}
        """When a table is to be looked at next; one that is missing is looked at never."""
        self.sharing: dict[Identity, set[Key]] = {}
        """The tables of each object that is a target."""
        self.looked = Instant(0)
        """When the tables were looked at last."""
        self.statuses: dict[Key, bytes] = {}
        """What was written last of each."""
        self._plans: dict[Key, Plan] = {}

    @classmethod
    def from_full(cls, delta: Delta) -> State:
        """Return the state that a full delta holds."""
        state = cls(delta.settings)
        state.progress = dict(delta.progress)
        state.apply(delta)
        state.due = dict(delta.due)
        state.looked = delta.looked
        state.statuses = {key: text.encode() for key, text in delta.statuses}
        return state

    def apply(self, delta: Delta) -> None:
        """Apply the changes."""
        if delta.settings is not None:
            self.settings = delta.settings
        self._forget(delta.gone)
        for table in delta.tables:
            known = self.progress.get(table.key)
            if known is None or known.uid != table.uid:
                self.progress[table.key] = Progress(
                    table.uid, table.marks, table.last, table.basis if table.marks else ""
                )
                self.statuses.pop(table.key, None)  # another object of the name has none of what was written
            elif _spec(self.tables.get(table.key)) == _spec(table):
                continue  # only the status changed, which this loop wrote itself
            elif known.attempts and table.key in self.tables:
                attempts = _still_there(known.attempts, self.tables[table.key].rules, table.rules)
                self.progress[table.key] = replace(known, attempts=attempts)
            self._forget_target(table.key)
            self.tables[table.key] = table
            self._plans.pop(table.key, None)
            self._share(table)
        self.views = {view.target: view for view in delta.views}

    def plan(self, key: Key) -> Plan:
        """Return a table with its texts parsed."""
        found = self._plans.get(key)
        if found is None:
            table, mode = self.tables[key], MODES[key[0]]
            # What holds does not depend on when an object with bounds was created.
            read = replace(table, created=Instant(0)) if mode.bounds else table
            found = plan_of(read, mode.forms, self.settings.schedules_zone)
            if mode.bounds:
                found = checked(found, table.created)
            elif mode.windows:
                found = refused_windows(found, table.created)
            else:
                found = with_meetings(found, table.created, first_only=mode.first_only)
            self._plans[key] = found
        return found

    def dump(self) -> Delta:
        """Return everything as a full delta, with the targets that this tick needs."""
        return Delta(
            settings=self.settings,
            tables=tuple(self.tables[key] for key in sorted(self.tables)),
            views=tuple(self.views.values()),
            progress=tuple((key, self.progress[key]) for key in sorted(self.progress)),
            due=tuple((key, self.due[key]) for key in sorted(self.due)),
            looked=self.looked,
            statuses=tuple((key, self.statuses[key].decode()) for key in sorted(self.statuses)),
        )

    def _forget(self, gone: Iterable[Key]) -> None:
        for key in gone:
            self._forget_target(key)
            self.tables.pop(key, None)
            self.progress.pop(key, None)
            self.due.pop(key, None)
            self.statuses.pop(key, None)
            self._plans.pop(key, None)

    def _share(self, table: Table) -> None:
        """Look again at all tables of the target: whether they contradict may have changed."""
        keys = self.sharing.setdefault(table.target.identity, set())
        keys.add(table.key)
        self.due.update(dict.fromkeys(keys, Instant(0)))

    def _forget_target(self, key: Key) -> None:
        known = self.tables.get(key)
        if known is None:
            return
        keys = self.sharing[known.target.identity]
        keys.discard(key)
        self.due.update(dict.fromkeys(keys, Instant(0)))
        if not keys:
            del self.sharing[known.target.identity]


def state_of(objects: Mapping[str, Iterable[Any]]) -> State:
    """Return the state of a loop that has just started and sees these objects.

    Args:
        objects: By kind, those of other loops included.
    """
    state = State()
    for kind, some in objects.items():
        mode = MODES[kind]
        there = (one for one in some if not one.metadata.deletion_timestamp and mode.ours(one))
        state.apply(Delta(tables=tuple(map(mode.read, there))))
    return state


def _still_there(
    attempts: Sequence[Attempt], old: Sequence[Rule], new: Sequence[Rule]
) -> tuple[Attempt, ...]:
    """Return the attempts of rules that a table still has after it was edited, under their places in it.

    What windows and bounds ask for together is asked anew.
    """
    places = {rule: place for place, rule in reversed([*enumerate(new)])}
    return tuple(
        replace(one, rule=places[old[one.rule]])
        for one in attempts
        if one.rule >= 0 and old[one.rule] in places
    )


def _spec(table: Table | None) -> Table | None:
    """Return a table without what its status says."""
    return None if table is None else replace(table, marks=(), last=None, basis="")
