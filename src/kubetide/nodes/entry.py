"""The node loop's entry for the rest of the program."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from kubetide.loop import Coming, FlagTable, Listener, LoopEntry, Parts, flags_of
from kubetide.nodes.controller import NodesController
from kubetide.nodes.controller.roles import NODES, NODES_STATUS
from kubetide.nodes.core import NodesCore
from kubetide.nodes.expander import expander_plugins, parse_expanders
from kubetide.nodes.explain.ahead import foreseen
from kubetide.nodes.explain.entry import EXPLAINING
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.nodes.scale_down.drain_rules.named import named_rules, rules_with
from kubetide.nodes.scale_up.pending.demand import SOURCES, check_sources, named_source
from kubetide.nodes.settings import WITHOUT_FLAG, Settings
from kubetide.objects.kinds import CAPACITY_KINDS, DEPLOYMENTS, DEVICE_KINDS, RESOURCE_QUOTAS, VOLUME_KINDS
from kubetide.ports.clock import Clock
from kubetide.ports.plugins import Plugin, PluginNotUsable
from kubetide.scheduling.scheduler_config import scheduler_config_problems
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, Instant

LOOP: Final = "nodes"


def _check(settings: Settings) -> None:
    """Raise ValueError for an expander, a demand source or a drain rule that does not exist, or a file that cannot be honoured."""
    parse_expanders(settings.expander)
    check_sources(settings.demand_sources)
    try:
        rules_with(settings.drain_rules)
    except PluginNotUsable as error:
        raise ValueError(str(error)) from error
    if problems := list(scheduler_config_problems(settings.scheduler_config_file)):
        raise ValueError(f"--scheduler-config-file: {'; '.join(problems)}")


def _plugins(settings: Settings) -> list[Plugin]:
    sources = [named_source(name)[0] for name in settings.demand_sources if name not in SOURCES]
    rules = [plugin for plugin, _ in named_rules(settings.drain_rules)]
    return [*rules, *sources, *expander_plugins(settings.expander)]


def _make(parts: Parts, settings: Settings) -> NodesController:
    assert parts.cloud is not None, "checked when the configuration was read"
    return NodesController(
        parts.cluster,
        parts.cloud,
        parts.clock,
        parts.recorder,
        parts.board,
        replace(settings, advises=parts.advises),
        seed=parts.seed,
        caches=parts.caches,
        offload=parts.offload,
        expander=parts.expander,
    )


def _series(registry: Registry, loop: NodesController, clock: Clock) -> Listener:
    # A simulation exposes none.
    from kubetide.nodes.series import NodesSeries  # noqa: PLC0415
    from kubetide.nodes.series.not_understood import show_not_understood  # noqa: PLC0415

    show_not_understood(registry, lambda: loop.not_understood)
    return NodesSeries(registry, loop, clock).on_record


def _ahead(core: NodesCore, now: Instant, ahead: Duration) -> list[Coming]:
    del ahead
    return foreseen(core.state, now)


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name=LOOP,
    flags=FlagTable(
        Settings,
        flags_of(Settings, without=WITHOUT_FLAG),
        check=_check,
        numbers=frozenset({"expendable-pods-priority-cutoff"}),
    ),
    make=_make,
    plugins=_plugins,
    core=EXPLAINING.core,
    vocabulary=EXPLAINING.vocabulary,
    roles=(NODES, NODES_STATUS),
    # Cluster Autoscaler's own, so that it and the node loop never act both.
    lease="cluster-autoscaler",
    series=_series,
    explainers=EXPLAINING.explainers,
    status=OVERVIEW,
    outlook=_ahead,
    needs_cloud=True,
    reads_board=True,
    optional_kinds=(DEPLOYMENTS, *VOLUME_KINDS, *DEVICE_KINDS, *CAPACITY_KINDS, RESOURCE_QUOTAS),
    # In a simulated run the loops share one plan.
    simulated_flags={"demand-sources": "pending,intents"},
)
