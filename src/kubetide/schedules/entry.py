"""The time-table loop, as the rest of the program knows it."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Explainer, FlagTable, LoopEntry, flags_of
from kubetide.objects.kinds import TIME_TABLE_KINDS
from kubetide.schedules.controller.controller import SchedulesController
from kubetide.schedules.core import SchedulesCore
from kubetide.schedules.outlook import lines, names
from kubetide.schedules.reasons import VOCABULARY
from kubetide.schedules.roles import SCHEDULES
from kubetide.schedules.settings import Settings
from kubetide.units.time import Instant


def _lines(core: SchedulesCore, subject: str, now: Instant, view: str) -> list[str]:
    del view
    return lines(core.state, subject, now)


def _names(core: SchedulesCore) -> list[str]:
    return names(core.state)


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name="schedules",
    flags=FlagTable(Settings, flags_of(Settings)),
    make=SchedulesController,
    core=SchedulesCore,
    vocabulary=VOCABULARY,
    roles=(SCHEDULES,),
    explainers=(Explainer("schedule", _lines, _names, namespaced=True),),
    optional_kinds=TIME_TABLE_KINDS,
)
