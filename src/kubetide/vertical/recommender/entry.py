"""The recommender's entry for the rest of the program."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Listener, LoopEntry, Parts
from kubetide.objects.kinds import CRON_JOBS, EVENTS, HPAS, JOBS, REPLICATION_CONTROLLERS
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.vertical.flag_tables import flag_table, read_feature_gates
from kubetide.vertical.recommender.controller import LOOP, RecommenderController
from kubetide.vertical.recommender.controller.history import HistoryReader
from kubetide.vertical.recommender.controller.roles import RECOMMENDER
from kubetide.vertical.recommender.explaining import EXPLAINING
from kubetide.vertical.recommender.overview import OVERVIEW
from kubetide.vertical.recommender.series.recommendations import RecommenderSeries
from kubetide.vertical.recommender.settings import Settings


def _make(parts: Parts, settings: Settings) -> RecommenderController:
    assert parts.sources is not None, "a process that runs this loop has metric sources"
    series, history = parts.sources.series, None
    if not settings.uses_checkpoints:
        if series is None:
            parts.warn(
                "recommender: this run has no Prometheus, so --vpa-storage=prometheus finds no history"
            )
        else:
            history = HistoryReader(series, parts.clock, settings, settings.vpa_object_namespace).read
    return RecommenderController(
        parts.cluster,
        parts.sources.resource,
        parts.clock,
        parts.recorder,
        settings,
        caches=parts.caches,
        board=parts.board,
        history=history,
        external=parts.sources.external,
        warn=parts.warn,
    )


def _series(registry: Registry, loop: RecommenderController, clock: Clock) -> Listener:
    return RecommenderSeries(registry, loop, clock).on_record


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name=LOOP,
    flags=flag_table(
        Settings,
        without=frozenset(),
        gates=("per_vpa_config", lambda text: read_feature_gates(text).per_vpa_config),
    ),
    make=_make,
    core=EXPLAINING.core,
    vocabulary=EXPLAINING.vocabulary,
    roles=(RECOMMENDER,),
    # Upstream's own, so that it and this loop never act both.
    lease="vpa-recommender-lease",
    series=_series,
    explainers=EXPLAINING.explainers,
    status=OVERVIEW,
    posts={"/recommendation": RecommenderController.answer_for_pod},
    optional_kinds=(EVENTS, HPAS, CRON_JOBS, JOBS, REPLICATION_CONTROLLERS),
)
