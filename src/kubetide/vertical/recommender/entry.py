"""The recommender, as the rest of the program knows it."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Listener, LoopEntry, Parts
from kubetide.objects.kinds import CRON_JOBS, EVENTS, HPAS, JOBS, REPLICATION_CONTROLLERS
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.vertical.flag_tables import flag_table, read_feature_gates
from kubetide.vertical.recommender.controller import LOOP, RecommenderController
from kubetide.vertical.recommender.controller.roles import RECOMMENDER
from kubetide.vertical.recommender.explaining import EXPLAINING
from kubetide.vertical.recommender.series import RecommenderSeries
from kubetide.vertical.recommender.settings import Settings


def _check(settings: Settings) -> None:
    """Raise ValueError for what this loop cannot do."""
    if not settings.uses_checkpoints:
        raise ValueError(
            "--vpa-storage=prometheus: history from Prometheus is not supported yet; leave the flag out, and "
            "checkpoints are read and written"
        )


def _make(parts: Parts, settings: Settings) -> RecommenderController:
    assert parts.sources is not None, "a process that runs this loop has metric sources"
    return RecommenderController(
        parts.cluster,
        parts.sources.resource,
        parts.clock,
        parts.recorder,
        settings,
        caches=parts.caches,
        board=parts.board,
    )


def _series(registry: Registry, loop: RecommenderController, clock: Clock) -> Listener:
    del clock
    return RecommenderSeries(registry, loop).heard


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name=LOOP,
    flags=flag_table(
        Settings,
        without=frozenset(),
        gates=("per_vpa_config", lambda text: read_feature_gates(text).per_vpa_config),
        check=_check,
    ),
    make=_make,
    core=EXPLAINING.core,
    vocabulary=EXPLAINING.vocabulary,
    roles=(RECOMMENDER,),
    # Upstream's own, so that it and this loop never act both.
    lease="vpa-recommender-lease",
    series=_series,
    explainers=EXPLAINING.explainers,
    optional_kinds=(EVENTS, HPAS, CRON_JOBS, JOBS, REPLICATION_CONTROLLERS),
)
