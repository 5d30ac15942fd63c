"""The updater, as the rest of the program knows it."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Listener, LoopEntry, Parts
from kubetide.objects.kinds import CRON_JOBS, JOBS, LIMIT_RANGES, REPLICATION_CONTROLLERS
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.vertical.flag_tables import flag_table, read_feature_gates
from kubetide.vertical.updater.controller import LOOP, UpdaterController
from kubetide.vertical.updater.controller.roles import UPDATER
from kubetide.vertical.updater.explaining import EXPLAINING
from kubetide.vertical.updater.overview import OVERVIEW
from kubetide.vertical.updater.series import UpdaterSeries
from kubetide.vertical.updater.settings import Settings


def _make(parts: Parts, settings: Settings) -> UpdaterController:
    return UpdaterController(
        parts.cluster,
        parts.clock,
        parts.recorder,
        settings,
        caches=parts.caches,
        board=parts.board,
        warn=parts.warn,
    )


def _series(registry: Registry, loop: UpdaterController, clock: Clock) -> Listener:
    del clock  # the controller times its loops
    return UpdaterSeries(registry, loop).on_record


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name=LOOP,
    flags=flag_table(
        Settings,
        # Of the whole process; `kubetide run` has settings of its own for them.
        without=frozenset({"address", "kube_api_qps", "kube_api_burst"}),
        gates=("gates", read_feature_gates),
    ),
    make=_make,
    series=_series,
    core=EXPLAINING.core,
    vocabulary=EXPLAINING.vocabulary,
    roles=(UPDATER,),
    # Upstream's own, so that it and this loop never act both.
    lease="vpa-updater",
    explainers=EXPLAINING.explainers,
    adds=EXPLAINING.adds,
    status=OVERVIEW,
    optional_kinds=(LIMIT_RANGES, CRON_JOBS, JOBS, REPLICATION_CONTROLLERS),
)
