"""The updater, as the rest of the program knows it."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Explainer, Listener, LoopEntry, Parts
from kubetide.objects.kinds import CRON_JOBS, JOBS, LIMIT_RANGES, REPLICATION_CONTROLLERS
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.units.time import Instant
from kubetide.vertical.flag_tables import flag_table, read_feature_gates
from kubetide.vertical.updater.controller import LOOP, UpdaterController
from kubetide.vertical.updater.controller.roles import UPDATER
from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.reasons import VOCABULARY, explain_pod
from kubetide.vertical.updater.series import UpdaterSeries
from kubetide.vertical.updater.settings import Settings


def _make(parts: Parts, settings: Settings) -> UpdaterController:
    return UpdaterController(parts.cluster, parts.clock, parts.recorder, settings, caches=parts.caches)


def _lines(core: UpdaterCore, subject: str, now: Instant, view: str) -> list[str]:
    del now, view
    namespace, _, name = subject.partition("/")
    if (namespace, name) not in core.state.pods:
        raise KeyError(subject)
    return explain_pod(core.reasons, subject)


def _series(registry: Registry, loop: UpdaterController, clock: Clock) -> Listener:
    del clock  # the controller times its loops
    return UpdaterSeries(registry, loop).heard


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
    core=UpdaterCore,
    vocabulary=VOCABULARY,
    roles=(UPDATER,),
    # Upstream's own, so that it and this loop never act both.
    lease="vpa-updater",
    explainers=(
        Explainer(
            "update",
            _lines,
            lambda core: [f"{namespace}/{name}" for namespace, name in core.state.pods],
            namespaced=True,
        ),
    ),
    optional_kinds=(LIMIT_RANGES, CRON_JOBS, JOBS, REPLICATION_CONTROLLERS),
)
