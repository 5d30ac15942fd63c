"""The time-table loop's entry for the rest of the program."""

from __future__ import annotations

from typing import Any, Final

from kubetide.explain.algorithm import StepCore
from kubetide.loop import Coming, Explainer, FlagTable, LoopEntry, flags_of
from kubetide.objects.kinds import ELASTIC_WORKLOADS, TIME_TABLE_KINDS
from kubetide.schedules.controller.controller import SchedulesController
from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.outlook import lines, names, targets, turns
from kubetide.schedules.reasons import VOCABULARY
from kubetide.schedules.roles import SCHEDULES
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.units.time import Duration, Instant, after


def _ahead(core: StepCore[State], now: Instant, ahead: Duration) -> list[Coming]:
    return [
        Coming(turn.at, f"{key[1]}/{key[2]}", text, f"{key[0]}, rule {turn.rule.name}")
        for key, turn, text in turns(core.state, now, after(now, ahead))
    ]


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name="schedules",
    flags=FlagTable(Settings, flags_of(Settings)),
    make=SchedulesController,
    core=ALGORITHM.core,
    vocabulary=VOCABULARY,
    roles=(SCHEDULES,),
    explainers=(Explainer("schedule", lines, names, namespaced=True, targets=targets),),
    outlook=_ahead,
    optional_kinds=(*TIME_TABLE_KINDS, ELASTIC_WORKLOADS),
)
