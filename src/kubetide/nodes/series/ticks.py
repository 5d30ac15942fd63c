"""``cluster_autoscaler_*``: Cluster Autoscaler's counters of its work.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026); names, labels and buckets are its own.
What can be seen at any time is in ``node_gauges``.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from kubetide.explain.records import Record
from kubetide.nodes.controller import NodesController
from kubetide.nodes.decision import (
    Commands,
    CreateGroup,
    DeleteGroup,
    DeleteInstances,
    DeleteNodes,
    EvictPod,
    IncreaseSize,
    Outcome,
    Outcomes,
)
from kubetide.nodes.facts.nodes import readiness
from kubetide.nodes.scale_down.deletion.events import FAILED
from kubetide.nodes.scale_down.deletion.evictions import GONE
from kubetide.nodes.series.bill import BillSeries
from kubetide.nodes.series.buffer_gauges import BufferGauges
from kubetide.nodes.series.demand import DemandSeries
from kubetide.nodes.series.functions import FunctionSeries
from kubetide.nodes.series.group_gauges import GroupGauges
from kubetide.nodes.series.kinds import UNKNOWN, KindCounter, kind_of_group, kind_of_node
from kubetide.nodes.series.node_gauges import NodeGauges
from kubetide.nodes.series.removals import RemovalSeries
from kubetide.nodes.series.template_gauges import TemplateGauges
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudErrorType
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, Instant, seconds

PREFIX = "cluster_autoscaler_"
_DOWN = ("ScaleDownNoCandidates", "ScaleDownNoNodeDeleted", "ScaleDownNodeDeleteStarted")
"""Results of a scale-down that no cooldown held; as upstream, also of one that had nothing to look at."""
_UP = ("ScaleUpSuccessful", "ScaleUpError", "ScaleUpNoOptionsAvailable")

ERRORS = (*get_args(CloudErrorType), "unexpectedScaleDownStateError")
"""Upstream's types; those that are not distinguished here stay at 0."""

_commands = msgspec.json.Decoder(Commands)
_outcomes = msgspec.json.Decoder(Outcomes)


class NodesSeries:
    """Counts the outcomes of each step; call ``on_record`` with each record of the loop."""

    def __init__(self, registry: Registry, controller: NodesController, clock: Clock) -> None:
        per_group = controller.state.settings.emit_per_nodegroup_metrics
        self._controller = controller
        self._stopwatch = controller.stopwatch()
        self._clock = clock
        self._gauges = NodeGauges(registry)
        self._groups = GroupGauges(registry) if per_group else None
        self._templates = TemplateGauges(registry)
        self._bill = BillSeries(registry)
        self._buffers = BufferGauges(registry)
        self._functions = FunctionSeries(registry, clock)
        self._demand = DemandSeries(registry)
        self._removals = RemovalSeries(registry)
        self._drains: dict[str, bool] = {}
        self._main: Instant | None = None
        self._last = registry.gauge(f"{PREFIX}last_activity", "When a part last ran.", ("activity",))
        self._errors = registry.counter(f"{PREFIX}errors_total", "Ticks that ended with an error.", ("type",))
        self._added = KindCounter(
            registry, "scaled_up_nodes_total", "scaled_up_gpu_nodes_total", "Nodes that were asked for."
        )
        self._failed = KindCounter(
            registry,
            "failed_scale_ups_total",
            "failed_gpu_scale_ups_total",
            "Scale-ups that failed.",
            "reason",
        )
        self._unmade = registry.counter(
            f"{PREFIX}failed_node_creations_total", "Machines that could not be made.", ("reason",)
        )
        self._removed = KindCounter(
            registry,
            "scaled_down_nodes_total",
            "scaled_down_gpu_nodes_total",
            "Nodes that were deleted.",
            "reason",
        )
        self._evicted = registry.counter(
            f"{PREFIX}evicted_pods_total", "Pods that were evicted, or could not be.", ("eviction_result",)
        )
        self._unregistered = registry.counter(
            f"{PREFIX}old_unregistered_nodes_removed_count",
            "Machines that never became nodes and were deleted.",
        )
        self._created = registry.counter(
            f"{PREFIX}created_node_groups_total", "Node groups that were created.", ("group_type",)
        )
        self._deleted = registry.counter(
            f"{PREFIX}deleted_node_groups_total", "Node groups that were deleted.", ("group_type",)
        )
        self._begin_at_zero()
        registry.before_scrape(self._collect)

    def _begin_at_zero(self) -> None:
        """Show what may yet be counted, as upstream does: a rate needs a value before the first."""
        for error in ERRORS:
            self._errors.add(0, error)
        for reason in ("cloudProviderError", "apiCallError", "timeout"):
            self._failed.add(0, UNKNOWN, reason)
            self._unmade.add(0, reason)
        for reason in ("underutilized", "empty", "unready"):
            self._removed.add(0, UNKNOWN, reason)
        for result in ("succeeded", "failed"):
            self._evicted.add(0, result)

    def on_record(self, record: Record) -> None:
        """Count the step that the record ends."""
        state = self._controller.state
        commands = _commands.decode(record.commands)
        outcomes = _outcomes.decode(record.outcomes).results
        for action, outcome in zip(commands.actions, outcomes, strict=True):
            self._count_action(state, action, outcome)
        if state.step == "update":
            self._count_failures(state)
            self._bill.update(state, record.now)
        given_up = sum(one.kind == "Pod" and one.reason == FAILED for one in commands.events)
        if given_up:
            self._evicted.add(given_up, "failed")
        self._demand.update(state)
        self._removals.update(state, commands.actions, outcomes, record.now)
        for part, took in self._stopwatch.take():
            self._functions.took(part, took)
        deletions = state.memory.scale_down.deletions
        # What a deletion was is asked when it has ended.
        self._drains = {name: deletion.drain for name, deletion in deletions.items()}
        if state.step != "actuate":
            self._count_step(state, commands, record.now)

    def _count_action(self, state: State, action: object, outcome: Outcome) -> None:
        done = outcome.status == "ok"
        if isinstance(action, IncreaseSize) and done:
            self._added.add(action.delta, kind_of_group(state, action.group))
        elif isinstance(action, IncreaseSize) and outcome.status == "failed":
            self._failed.add(1, kind_of_group(state, action.group), outcome.error_type)
            self._unmade.add(action.delta, outcome.error_type)
        elif isinstance(action, CreateGroup) and done:
            self._created.add(1, "autoprovisioned")
        elif isinstance(action, DeleteGroup) and done:
            self._deleted.add(1, "autoprovisioned")
        elif isinstance(action, DeleteNodes) and done:
            for name in action.nodes:
                node = state.nodes.get(name)
                self._removed.add(1, kind_of_node(state, name), self._why_removed(state, name, node))
        elif isinstance(action, EvictPod) and (done or outcome.error_code in GONE):
            self._evicted.add(_must_go(state, action), "succeeded")
        elif isinstance(action, DeleteInstances) and action.why == "unregistered" and done:
            self._unregistered.add(len(action.provider_ids))

    def _why_removed(self, state: State, name: str, node: Node | None) -> str:
        if node is not None and readiness(node, state.settings):
            return "unready"
        return "underutilized" if self._drains.get(name) else "empty"

    def _count_failures(self, state: State) -> None:
        view = state.view
        if view is None:
            return
        for group, request in view.timed_out:
            self._failed.add(1, kind_of_group(state, group), "timeout")
            self._unmade.add(request.increase, "timeout")
        for failure in view.failures:
            self._failed.add(1, kind_of_group(state, failure.group), failure.error_code)
            self._unmade.add(failure.machines, failure.error_code)

    def _count_step(self, state: State, commands: Commands, now: Instant) -> None:
        at = _unix(now)
        if state.step == "update":
            self._main = now
        if state.step in {"update", "scale_up", "pack"} and state.tick is not None:
            self._last.set(at, "autoscaling")
            self._buffers.update(state, now, self._controller.unwritten)
            if state.tick.result in _UP:
                self._last.set(at, "scaleUp")
        if state.step == "min_size":
            self._last.set(at, "scaleUp")
        if commands.result in _DOWN:
            self._last.set(at, "scaleDown")
            self._gauges.scale_down_began(state)
        if not commands.next_step:
            self._functions.took("main", Duration(self._clock.monotonic() - self._controller.health.began))

    def _collect(self) -> None:
        controller = self._controller
        if self._main is not None:
            self._last.set(_unix(self._main), "main")
        health = controller.health
        if health.last_tick is not None:
            self._last.set(_unix(health.last_tick), "mainSuccessful")
        of_api = health.failures - health.cloud_failures - health.bugs
        for kind, count in zip(ERRORS, (health.cloud_failures, of_api, health.bugs), strict=False):
            self._errors.set(count, kind)
        if controller.deciding:
            return  # what was shown last stands until the state may be read again
        self._gauges.collect(controller.state, self._clock.now())
        self._buffers.collect(controller.state, self._clock.now(), controller.unwritten)
        self._templates.collect(controller.state)
        if self._groups is not None:
            self._groups.collect(controller.state, self._clock.now())


def _must_go(state: State, action: EvictPod) -> bool:
    """Return whether the node waits for the pod to go: as upstream, DaemonSet pods that may stay are not counted."""
    deletion = state.memory.scale_down.deletions.get(action.node)
    known = () if deletion is None else deletion.pods
    return all(one.needed for one in known if (one.name, one.uid) == (action.name, action.uid))


def _unix(t: Instant) -> int:
    """Return the Unix time in whole seconds, as upstream shows it."""
    return t // seconds(1)
