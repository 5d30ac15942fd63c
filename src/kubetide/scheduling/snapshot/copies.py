"""Copies of templates in a snapshot: the nodes that an estimate or a simulation adds."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.snapshot.log import ChangeLog
from kubetide.scheduling.snapshot.store import SnapshotStore

_MOST_TEMPLATES = 64
"""Templates of which a row is cached to evaluate classes by."""


class TemplateCopies:
    """Adds copies of templates to a store; classes are evaluated once for all copies of one template."""

    def __init__(self, store: SnapshotStore, log: ChangeLog) -> None:
        self._store = store
        self._log = log
        self._templates: dict[int, tuple[Node, Rows]] = {}

    def add(self, template: Node, daemon_pods: Sequence[Pod], names: Sequence[str]) -> None:
        """Add copies of a template under names, which are also their hostnames, each with its DaemonSet pods."""
        store = self._store
        self._add_devices(template, names)
        labels, metadata = template.metadata.labels or {}, template.metadata
        nodes = [
            replace(template, metadata=replace(metadata, name=name, labels={**labels, HOSTNAME: name}))
            for name in names
        ]
        if not (store.pods.keys().isdisjoint(names) and store.rows.row_of.keys().isdisjoint(names)):
            for node in nodes:
                store.set_node(node)
        elif nodes:
            self._append(template, nodes)
        for name in names if daemon_pods else ():
            for pod in daemon_pods:
                renamed = replace(pod.metadata, name=f"{pod.metadata.name}-{name}")
                store.add_pod(replace(pod, metadata=renamed), name)

    def _append(self, template: Node, nodes: Sequence[Node]) -> None:
        store, log = self._store, self._log
        rows = store.compacted()
        store.add_columns(rows.missing(template))
        alone = self._row_of(template, nodes[0])
        first = rows.n
        if not rows.extend(nodes, alone):
            store.layout = log.stamp()
        log.record(rows.shrink, len(nodes))
        log.touch()
        log.lineage = log.lineage.with_copies(log.version, first, rows.n, alone)

    def _row_of(self, template: Node, node: Node) -> Rows:
        """Return rows with one copy of a template and nothing else, the same for all its copies, now and later."""
        facts = self._store.rows.facts
        known = self._templates.get(id(template))
        if known is None or known[1].facts is not facts:
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            alone = Rows(facts=facts, pods={})
            alone.append(node)
            known = self._templates[id(template)] = (template, alone)
        return known[1]

    def _add_devices(self, template: Node, names: Sequence[str]) -> None:
        if (ledger := self._store.rows.devices) is not None:
            for name in names:
                self._log.record(ledger.add_copy(template.metadata.name, name))
