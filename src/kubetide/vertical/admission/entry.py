"""The admission controller's entry for the rest of the program."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Listener, LoopEntry, Parts
from kubetide.objects.kinds import CRON_JOBS, JOBS, LIMIT_RANGES, REPLICATION_CONTROLLERS
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.vertical.admission.controller import LOOP, AdmissionController
from kubetide.vertical.admission.controller.certificates import Given
from kubetide.vertical.admission.controller.roles import ADMISSION
from kubetide.vertical.admission.explaining import EXPLAINING
from kubetide.vertical.admission.series import AdmissionSeries
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.flag_tables import flag_table, read_feature_gates


def _make(parts: Parts, settings: Settings) -> AdmissionController:
    if parts.advises and parts.board is not None:
        parts.board.advises_admission = True
    return AdmissionController(
        parts.cluster,
        parts.clock,
        settings,
        caches=parts.caches,
        on_problem=parts.warn,
        answers=parts.answers,
        board=parts.board,
    )


def _series(registry: Registry, loop: AdmissionController, clock: Clock) -> Listener:
    del clock  # reviews are timed as they are answered
    AdmissionSeries(registry, loop)
    return lambda _: None


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
    roles=(ADMISSION,),
    # All replicas answer; the lease that the updater looks at is no lock.
    lease="",
    # Whose certificates the API server trusts answers, whoever holds the Lease.
    stands_by=lambda settings: Given(settings).exist(),
    optional_kinds=(LIMIT_RANGES, CRON_JOBS, JOBS, REPLICATION_CONTROLLERS),
)
