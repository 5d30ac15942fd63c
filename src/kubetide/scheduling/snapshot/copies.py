"""Copies in a snapshot: nodes made of a template, and nameless pods of one class."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.columns.rows import Int64Vector, Rows
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.store import SnapshotStore

_MOST_TEMPLATES = 64
"""Templates of which a row is kept to judge classes by."""


class SnapshotCopies(SnapshotStore):
    """What estimates and simulations change by the dozen."""

    def __init__(self, facts: ClusterFacts | None = None) -> None:
        super().__init__(facts)
        self._templates: dict[int, tuple[Node, Rows]] = {}

    def add_copies(self, pod_class: PodClass, rows: Int64Vector, numbers: Int64Vector) -> None:
        """Puts nameless pods of a class on rows, for an estimate: ``pods_on`` does not list them.

        Only on a fork, and after ``prepare`` for every class that will be asked about on it.
        """
        if not self._marks:
            raise RuntimeError("add_copies without fork: nameless pods cannot be taken out but by revert")
        self._add_columns(key for key, _ in pod_class.charges if key not in self._rows.columns)
        self._rows.add_copies(pod_class, rows, numbers, 1)
        self._record(self._rows.add_copies, pod_class, rows, numbers, -1)
        self._touch()

    def add_template(self, template: Node, daemon_pods: Sequence[Pod], name: str) -> None:
        """Adds a copy of a template under a name, which is its hostname too, with its DaemonSet pods."""
        self.add_templates(template, daemon_pods, (name,))

    def add_templates(self, template: Node, daemon_pods: Sequence[Pod], names: Sequence[str]) -> None:
        """Adds copies of a template under names, which are their hostnames too, each with its DaemonSet pods."""
        self._add_device_copies(template, names)
        labels, metadata = template.metadata.labels or {}, template.metadata
        nodes = [
            replace(template, metadata=replace(metadata, name=name, labels={**labels, HOSTNAME: name}))
            for name in names
        ]
        if not (self._pods.keys().isdisjoint(names) and self._rows.row_of.keys().isdisjoint(names)):
            for node in nodes:
                self.set_node(node)
        elif nodes:
            self._append_copies(template, nodes)
        for name in names if daemon_pods else ():
            for pod in daemon_pods:
                renamed = replace(pod.metadata, name=f"{pod.metadata.name}-{name}")
                self.add_pod(replace(pod, metadata=renamed), name)

    # ── Inside ──

    def _append_copies(self, template: Node, nodes: Sequence[Node]) -> None:
        rows = self._compacted()
        self._add_columns(rows.missing(template))
        alone = self._template_alone(template, nodes[0])
        first = rows.n
        if not rows.extend(nodes, alone):
            self._layout = self._stamp()
        self._record(rows.shrink, len(nodes))
        self.version = self._stamp()
        self._lineage = self._lineage.with_copies(self.version, first, rows.n, alone)

    def _template_alone(self, template: Node, node: Node) -> Rows:
        """A row for all copies of a template, here or earlier: classes are judged by it once."""
        known = self._templates.get(id(template))
        if known is None or known[1].facts is not self._rows.facts:
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            alone = Rows(facts=self._rows.facts, pods={})
            alone.append(node)
            known = self._templates[id(template)] = (template, alone)
        return known[1]

    def _add_device_copies(self, template: Node, names: Sequence[str]) -> None:
        if (ledger := self._rows.devices) is not None:
            for name in names:
                self._record(ledger.add_copy(template.metadata.name, name))
