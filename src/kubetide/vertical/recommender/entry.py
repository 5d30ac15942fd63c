"""The recommender, as the rest of the program knows it."""

from __future__ import annotations

from typing import Any, Final

from kubetide.loop import Explainer, Listener, LoopEntry, Parts
from kubetide.objects.kinds import CRON_JOBS, EVENTS, HPAS, JOBS, REPLICATION_CONTROLLERS
from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.units.time import Instant
from kubetide.vertical.flag_tables import flag_table, read_feature_gates
from kubetide.vertical.recommender.controller import LOOP, RecommenderController
from kubetide.vertical.recommender.controller.history import HistoryReader
from kubetide.vertical.recommender.controller.roles import RECOMMENDER
from kubetide.vertical.recommender.core import RecommenderCore
from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.recommender.reasons import VOCABULARY
from kubetide.vertical.recommender.series import RecommenderSeries
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
    return RecommenderSeries(registry, loop, clock).heard


def _lines(core: RecommenderCore, subject: str, now: Instant, view: str) -> list[str]:
    del now, view
    namespace, _, name = subject.partition("/")
    return explain_vpa(core.state, namespace, name)


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name=LOOP,
    flags=flag_table(
        Settings,
        without=frozenset(),
        gates=("per_vpa_config", lambda text: read_feature_gates(text).per_vpa_config),
    ),
    make=_make,
    series=_series,
    core=RecommenderCore,
    vocabulary=VOCABULARY,
    roles=(RECOMMENDER,),
    # Upstream's own, so that it and this loop never act both.
    lease="vpa-recommender-lease",
    explainers=(
        Explainer(
            "vpa",
            _lines,
            lambda core: [f"{namespace}/{name}" for namespace, name in core.state.vpas],
            namespaced=True,
        ),
    ),
    optional_kinds=(EVENTS, HPAS, CRON_JOBS, JOBS, REPLICATION_CONTROLLERS),
)
