"""The time-table loop, as the rest of the program knows it."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Coming, Explainer, FlagTable, LoopEntry, flags_of
from kubetide.objects.kinds import ELASTIC_WORKLOADS, TIME_TABLE_KINDS
from kubetide.schedules.controller.controller import SchedulesController
from kubetide.schedules.core import SchedulesCore
from kubetide.schedules.outlook import lines, names, turns
from kubetide.schedules.reasons import VOCABULARY
from kubetide.schedules.roles import SCHEDULES
from kubetide.schedules.settings import Settings
from kubetide.units.time import Duration, Instant, after


def _lines(core: SchedulesCore, subject: str, now: Instant, view: str) -> list[str]:
    del view
    return lines(core.state, subject, now)


def _names(core: SchedulesCore) -> list[str]:
    return names(core.state)


def _ahead(core: SchedulesCore, now: Instant, ahead: Duration) -> list[Coming]:
    return [
        Coming(turn.at, f"{key[1]}/{key[2]}", text, f"{key[0]}, rule {turn.rule.name}")
        for key, turn, text in turns(core.state, now, after(now, ahead))
    ]


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name="schedules",
    flags=FlagTable(Settings, flags_of(Settings)),
    make=SchedulesController,
    core=SchedulesCore,
    vocabulary=VOCABULARY,
    roles=(SCHEDULES,),
    explainers=(Explainer("schedule", _lines, _names, namespaced=True),),
    outlook=_ahead,
    optional_kinds=(*TIME_TABLE_KINDS, ELASTIC_WORKLOADS),
)
