"""The horizontal loop's entry for the rest of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubetide.forecast.forecaster import PLUGINS as FORECASTERS
from kubetide.forecast.forecaster import CalendarForecaster, load_forecaster
from kubetide.forecast.headroom import NAME as HEADROOM
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.controller.roles import HORIZONTAL
from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain.entry import EXPLAINING
from kubetide.horizontal.explain.overview import OVERVIEW
from kubetide.horizontal.options.forecasting import foreseen
from kubetide.horizontal.options.named import named_options
from kubetide.horizontal.series import HorizontalSeries, show_sources
from kubetide.horizontal.settings import FeatureGates, Settings
from kubetide.loop import Coming, FlagError, FlagTable, Listener, LoopEntry, Parts
from kubetide.ports.clock import Clock
from kubetide.ports.plugins import Plugin, PluginNotUsable
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, Instant

LOOP: Final = "horizontal"

_FEATURE_GATES = "feature-gates"
_GATES: Mapping[str, str] = {
    "HPAConfigurableTolerance": "configurable_tolerance",
    "HPAScaleToZero": "scale_to_zero",
    "PodLevelResources": "pod_level_resources",
}


def _gates(text: str) -> FeatureGates:
    """Read ``Gate=true,Other=false``, upstream's form of --feature-gates. Raises FlagError."""
    gates: dict[str, bool] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in _GATES:
            raise FlagError(f"--{_FEATURE_GATES}: unknown gate `{name}`; there are {', '.join(_GATES)}")
        if value.lower() not in {"true", "false"}:
            raise FlagError(
                f"--{_FEATURE_GATES}: {part.strip()!r} cannot be read; write {name}=true or false"
            )
        gates[_GATES[name]] = value.lower() == "true"
    return FeatureGates(**gates)


def _check(settings: Settings) -> None:
    """Raise ValueError for a forecaster or an option that cannot be loaded."""
    try:
        if settings.forecaster not in {"", HEADROOM}:
            load_forecaster(settings.forecaster)
        named_options(settings.options)
    except PluginNotUsable as error:
        raise ValueError(str(error)) from error


def _plugins(settings: Settings) -> list[Plugin]:
    forecaster = settings.forecaster
    found = [plugin for plugin, _ in named_options(settings.options).values()]
    if forecaster not in {"", HEADROOM, CalendarForecaster.name}:
        found.append(FORECASTERS.load(forecaster)[0])
    return found


def _make(parts: Parts, settings: Settings) -> HorizontalController:
    assert parts.sources is not None, "a process that runs this loop has metric sources"
    return HorizontalController(
        parts.cluster,
        parts.sources.resource,
        parts.clock,
        parts.recorder,
        parts.board,
        settings,
        caches=parts.caches,
        custom=parts.sources.custom,
        external=parts.sources.external,
        owners=parts.owners,
        advises=parts.advises,
    )


def _series(registry: Registry, loop: HorizontalController, clock: Clock) -> Listener:
    show_sources(registry, loop)
    return HorizontalSeries(registry, loop, clock).on_record


def _ahead(core: HorizontalCore, now: Instant, ahead: Duration) -> list[Coming]:
    return [Coming(one.at, "/".join(key), *said) for key, one, said in foreseen(core.state, now, ahead)]


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name=LOOP,
    flags=FlagTable(
        Settings,
        {
            "concurrent-horizontal-pod-autoscaler-syncs": "concurrent_syncs",
            "horizontal-pod-autoscaler-sync-period": "sync_period",
            "horizontal-pod-autoscaler-downscale-stabilization": "downscale_stabilization",
            "horizontal-pod-autoscaler-tolerance": "tolerance",
            "horizontal-pod-autoscaler-cpu-initialization-period": "cpu_initialization_period",
            "horizontal-pod-autoscaler-initial-readiness-delay": "initial_readiness_delay",
            "horizontal-pod-autoscaler-immediate-sync": "immediate_sync",
            "horizontal-pod-autoscaler-metrics-status-period": "metrics_status_period",
            "horizontal-pod-autoscaler-forecast": "forecast",
            "horizontal-pod-autoscaler-forecaster": "forecaster",
            "horizontal-pod-autoscaler-forecast-budget": "forecast_budget",
            "horizontal-pod-autoscaler-emptiest-node-first": "emptiest_node_first",
            "horizontal-pod-autoscaler-options": "options",
            # Of the node loop too.
            "max-cache-age": "max_cache_age",
            "max-relist-loss": "max_relist_loss",
            "relist-hold": "relist_hold",
            "kubernetes-version": "kubernetes_version",
            _FEATURE_GATES: "gates",
        },
        readers={_FEATURE_GATES: _gates},
        check=_check,
    ),
    make=_make,
    plugins=_plugins,
    core=EXPLAINING.core,
    vocabulary=EXPLAINING.vocabulary,
    roles=(HORIZONTAL,),
    # Upstream's HPA controller has none to itself.
    lease="kubetide",
    series=_series,
    explainers=EXPLAINING.explainers,
    status=OVERVIEW,
    outlook=_ahead,
)
