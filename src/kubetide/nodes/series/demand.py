"""``cluster_autoscaler_*`` series of demand, and of scale-ups that cluster-wide limits prevented.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026).
"""

from __future__ import annotations

from kubetide.nodes.expander import packs_all_groups
from kubetide.nodes.facts.nodes import INSTANCE_TYPE_LABEL
from kubetide.nodes.scale_up.tick import Tick, Verdict
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.units.exposition import Registry, exponential_buckets
from kubetide.units.quantity import Quantity

PREFIX = "cluster_autoscaler_"
_LIMITS = {"cpu": "CpuResourceLimit", "memory": "MemoryResourceLimit"}
_REQUESTOR = "filter-out-pod-list-processor"


class DemandSeries:
    """Counts the results of each step."""

    def __init__(self, registry: Registry) -> None:
        self._over_limits = registry.counter(
            f"{PREFIX}skipped_scale_events_count",
            "Groups that did not grow, and nodes that did not go, because of a limit over the whole cluster.",
            ("direction", "reason"),
        )
        for direction in ("down", "up"):
            for limit in _LIMITS.values():
                self._over_limits.add(0, direction, limit)
        self._mixture = registry.histogram(
            f"{PREFIX}binpacking_heterogeneity",
            "Groups of like pods that were packed together on nodes of one group.",
            ("cpu_count", "instance_type", "namespace_count"),
            buckets=exponential_buckets(1, 2, 6),
        )
        self._overflowing = registry.gauge(
            f"{PREFIX}overflowing_controllers_count",
            "Controllers with more distinct pods that fit nowhere than are remembered.",
        )
        self._passed_over = registry.gauge(
            f"{PREFIX}skipped_pods_count", "Pods for which no place was looked for.", ("requestor",)
        )
        self._counted: tuple[Tick | None, int] = (None, 0)
        self._packed: list[Verdict] = []

    def update(self, state: State) -> None:
        """Count the results of the step that has ended."""
        tick = state.tick
        if tick is None:
            return
        if state.step in {"update", "scale_up"}:
            self._overflowing.set(tick.demand.overflowing)
            self._passed_over.set(tick.demand.unprocessed, _REQUESTOR)
        if tick.verdicts is not self._packed:  # a salvo packs several times in a tick
            self._count_packings(state, tick)
            self._packed = tick.verdicts
        self._count_limits(tick)

    def _count_packings(self, state: State, tick: Tick) -> None:
        if packs_all_groups(state.settings.expander):
            return
        # Verdicts that are alike share what they accept: there are few such sets.
        alike: dict[int, list[Verdict]] = {}
        for verdict in tick.verdicts:
            alike.setdefault(id(verdict.accepted), []).append(verdict)
        namespaces = {at: {_namespace(one) for one in verdicts} for at, verdicts in alike.items()}
        for group_id in tick.view.groups:
            template = tick.templates.get(group_id)
            taken = [at for at, verdicts in alike.items() if group_id in verdicts[0].accepted]
            if template is not None and taken:
                many = sum(len(alike[at]) for at in taken)
                spaces = set[str]().union(*(namespaces[at] for at in taken))
                self._mixture.observe(many, *_machine(template.node), _few(len(spaces)))

    def _count_limits(self, tick: Tick) -> None:
        known, before = self._counted
        for direction, resources in tick.over_limits[before if known is tick else 0 :]:
            for resource in resources:
                if resource in _LIMITS:  # as upstream, of GPUs nothing is counted
                    self._over_limits.add(1, direction, _LIMITS[resource])
        self._counted = tick, len(tick.over_limits)


def _namespace(verdict: Verdict) -> str:
    return verdict.pods.pods[0].metadata.namespace


def _machine(node: Node) -> tuple[str, str]:
    cpu = Quantity.parse((node.status.capacity or {}).get("cpu", 0))
    return str(cpu), (node.metadata.labels or {}).get(INSTANCE_TYPE_LABEL, "")


def _few(namespaces: int) -> str:
    """Return the label's value: few enough for a series each."""
    if namespaces > 10:
        return "11+"
    return str(namespaces) if namespaces <= 5 else "6-10"
