"""``cluster_autoscaler_*`` gauges: the loop's present state, computed on collection."""

from __future__ import annotations

from collections import Counter

from kubetide.nodes.facts.nodes import is_being_deleted, taint_type
from kubetide.nodes.facts.pods import found_no_node, is_unschedulable
from kubetide.nodes.scale_down.deletion.deletions import waits_for_others
from kubetide.nodes.settings import Settings, parse_range
from kubetide.nodes.state import State
from kubetide.nodes.templates.device_mismatch import Mismatch, device_mismatches
from kubetide.units.exposition import Numbers, Registry
from kubetide.units.quantity import whole_or_zero
from kubetide.units.time import Instant

PREFIX = "cluster_autoscaler_"
_GIB = 1 << 30


class NodeGauges:
    """The gauges of one registry."""

    def __init__(self, registry: Registry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Numbers:
            return registry.gauge(f"{PREFIX}{name}", text, labels)

        self._safe = gauge("cluster_safe_to_autoscale", "Whether enough of the cluster is ready: 1 or 0.")
        self._nodes = gauge("nodes_count", "Nodes and machines, by their state.", "state")
        self._groups = gauge("node_groups_count", "Node groups.", "node_group_type")
        self._pending = gauge("unschedulable_pods_count", "Pods that wait for a node.", "type")
        self._max_nodes = gauge("max_nodes_count", "Most nodes that there may be.")
        self._cores = gauge("cluster_cpu_current_cores", "Cores of all nodes that are not being deleted.")
        self._core_limits = gauge("cpu_limits_cores", "Bounds of --cores-total.", "direction")
        self._memory = gauge(
            "cluster_memory_current_bytes", "Memory of all nodes that are not being deleted."
        )
        self._memory_limits = gauge("memory_limits_bytes", "Bounds of --memory-total.", "direction")
        self._waiting = gauge(
            "pending_node_deletions",
            "Drained nodes that wait for the others of their group, as it goes as a whole; counted when a scale-down begins.",
        )
        self._waiting.set(0)
        self._unneeded = gauge("unneeded_nodes_count", "Nodes that are not needed.")
        self._unremovable = gauge("unremovable_nodes_count", "Nodes that stay, by why.", "reason")
        self._cooldown = gauge("scale_down_in_cooldown", "Whether scale-down waits: 1 or 0.")
        self._taints = gauge("node_taints_count", "Taints of all nodes.", "type")
        self._mismatches = gauge(
            "dra_node_template_resources_mismatch",
            "Groups of like devices in which ready nodes differ from their template.",
            "driver",
            "mismatch_type",
        )
        self._differing: dict[str, None] = {}
        """Drivers whose devices have differed."""

    def collect(self, state: State, now: Instant) -> None:
        """Set all gauges; before the first tick only configured values are known."""
        self._collect_limits(state.settings)
        if state.view is None:
            return
        self._collect_nodes(state, now)
        self._collect_pending(state)
        self._collect_mismatches(state)
        memory = state.memory.scale_down
        self._unneeded.set(len(memory.unneeded))
        self._cooldown.set(memory.status.result == "ScaleDownInCooldown")
        _set_all(self._unremovable, Counter(one.reason for one in memory.status.unremovable))

    def scale_down_began(self, state: State) -> None:
        """Count the drained nodes whose deletions wait for others.

        Source: Cluster Autoscaler, GroupDeletionScheduler, which counts its queue at the start of each scale-down that no
        cooldown holds. Only nodes of groups that go as a whole stay in it.
        """
        deletions = state.memory.scale_down.deletions.values()
        ready = [one.group for one in deletions if one.phase == "ready"]
        self._waiting.set(sum(waits_for_others(state, group) for group in ready))

    def _collect_limits(self, settings: Settings) -> None:
        cores = parse_range(settings.cores_total, "cores-total")
        memory = parse_range(settings.memory_total, "memory-total")
        for direction, core_limit, gib in (
            ("minimum", cores.minimum, memory.minimum),
            ("maximum", cores.maximum, memory.maximum),
        ):
            self._core_limits.set(core_limit, direction)
            self._memory_limits.set(gib * _GIB, direction)

    def _collect_nodes(self, state: State, now: Instant) -> None:
        view = state.view
        assert view is not None, "asked for after the first tick only"
        self._safe.set(view.healthy)
        total = view.total
        for label, count in (
            ("ready", total.ready),
            ("unready", total.unready),
            ("notStarted", len(total.not_started)),
            ("suspended", total.suspended),
            ("unregistered", len(total.unregistered)),
            ("longUnregistered", len(total.long_unregistered)),
        ):
            self._nodes.set(count, label)
        created = sum(group.autoprovisioned for group in state.groups.values())
        self._groups.set(len(state.groups) - created, "autoscaled")
        self._groups.set(created, "autoprovisioned")
        most = sum(group.max_size for group in state.groups.values() if group.exists)
        limit = state.settings.max_nodes_total
        self._max_nodes.set(min(limit, most) if limit > 0 else most)
        cores = memory = 0
        taints: Counter[str] = Counter()
        for node in state.nodes.values():
            taints.update(taint_type(taint.key, state.settings) for taint in node.spec.taints or ())
            if not is_being_deleted(node, now):
                capacity = node.status.capacity or {}
                cores += whole_or_zero(capacity.get("cpu", 0))
                memory += whole_or_zero(capacity.get("memory", 0))
        self._cores.set(cores)
        self._memory.set(memory)
        _set_all(self._taints, taints)

    def _collect_pending(self, state: State) -> None:
        """Count the pods that nodes are asked for; of bypassed schedulers also those not looked at yet.

        With proactive scale-up also the pods that are still to be made, and those beyond ``--pod-injection-limit``.
        """
        given_up = unseen = 0
        for pod in state.pending.values():
            if is_unschedulable(pod, state.settings):
                if found_no_node(pod):
                    given_up += 1
                else:
                    unseen += 1
        self._pending.set(given_up, "unschedulable")
        self._pending.set(unseen, "scheduler_unprocessed")
        if state.settings.enable_proactive_scaleup and state.tick is not None:
            self._pending.set(state.tick.demand.injected, "injected")
            self._pending.set(state.tick.demand.over_limit, "skipped_injection")

    def _collect_mismatches(self, state: State) -> None:
        """Once a driver is shown it stays, at 0 while nothing of it differs."""
        found = device_mismatches(state)
        self._differing.update(dict.fromkeys(found))
        for driver in self._differing:
            one = found.get(driver, Mismatch())
            self._mismatches.set(one.missing, driver, "missing")
            self._mismatches.set(one.extra, driver, "extra")
            self._mismatches.set(one.mismatch, driver, "mismatch")


def _set_all(gauge: Numbers, counts: Counter[str]) -> None:
    """Set the gauge of each label's value, and forget the others."""
    gauge.clear()
    for value, count in counts.items():
        gauge.set(count, value)
