"""The snapshot: which pods are on which nodes, what is left, and what would fit.

Kept up to date in place, from watch events; ``fork`` and ``revert`` try things out at the cost of
what was changed, not of the cluster's size. Rows are nodes in the order in which they were added; a
node that is removed and added again goes to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import explain
from kubetide.scheduling.columns.counting import DomainTable
from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.scheduling.columns.rows import BoolVector, Int64Vector, Rows
from kubetide.scheduling.devices.asked import asks_for_devices
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.filters.dynamic_resources import DeviceJudge
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import ColumnKey, PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.copies import SnapshotCopies
from kubetide.scheduling.snapshot.node_pods import PodKey
from kubetide.scheduling.snapshot.verdicts import Known, Lineage, Verdicts

_SCALAR_ROWS = 32


class Snapshot(SnapshotCopies):
    """Nodes, the pods on them, and the columns that say what fits.

    Pods may arrive before their node: they wait by its name and count as soon as it is there.
    Readers get read-only views that hold until the next change.

    Attributes:
        version: Another number after every change; after ``revert`` the number of before the fork.
    """

    def __init__(self, facts: ClusterFacts | None = None) -> None:
        super().__init__(facts)
        self._verdicts = Verdicts()

    # ── Reading ──

    @property
    def node_names(self) -> Sequence[str]:
        """Node names in row order. Not to be changed."""
        return self._compacted().names

    @property
    def allocatable(self) -> Mapping[str, Int64Vector]:
        """What each node offers, by resource: milli-CPU, bytes, counts."""
        rows = self._compacted()
        return {k: _view(c.allocatable, rows.n) for k, c in rows.columns.items() if isinstance(k, str)}

    def names(self) -> Iterator[str]:
        """Gives all names that a new node must not have to be new: of nodes, hostnames, and what pods wait for."""
        rows = self._compacted()
        yield from rows.names
        yield from self._pods
        for node in rows.nodes:
            yield labels_of(node).get(HOSTNAME, "")

    @property
    def free(self) -> Mapping[str, Int64Vector]:
        """What is left on each node, by resource; negative where over-committed."""
        rows = self._compacted()
        return {k: _view(c.free, rows.n) for k, c in rows.columns.items() if isinstance(k, str)}

    def column(self, resource: str) -> tuple[Int64Vector, Int64Vector] | None:
        """Gives what each node offers of one resource, and what is left; None for a resource that nobody offers or asks for."""
        rows = self._compacted()
        column = rows.columns.get(resource)
        return None if column is None else (_view(column.allocatable, rows.n), _view(column.free, rows.n))

    @property
    def requested(self) -> Mapping[str, Int64Vector]:
        """What the pods on each node take, by resource."""
        rows = self._compacted()
        taken: dict[str, Int64Vector] = {}
        for key, column in rows.columns.items():
            if isinstance(key, str):
                taken[key] = column.allocatable[: rows.n] - column.free[: rows.n]
                taken[key].flags.writeable = False
        return taken

    @property
    def unschedulable(self) -> BoolVector:
        """Whether each node is cordoned by ``spec.unschedulable``."""
        rows = self._compacted()
        cordoned: BoolVector = _view(rows.unschedulable, rows.n)
        return cordoned

    def __contains__(self, name: str) -> bool:
        return name in self._rows.row_of

    def __len__(self) -> int:
        return len(self._rows.row_of)

    def row(self, name: str) -> int:
        """Gives the node's row. Raises KeyError for a node that is not here."""
        return self._compacted().row_of[name]

    def node(self, name: str) -> Node:
        """Gives the node object. Raises KeyError for a node that is not here."""
        rows = self._rows
        return rows.nodes[rows.row_of[name]]

    def pods_on(self, name: str) -> tuple[Pod, ...]:
        """Gives the pods on (or waiting for) a node, in the order in which they were added."""
        there = self._pods.get(name)
        if there is None:
            return ()
        found = there.listed
        if found is None:
            found = there.listed = tuple(there.pods)
        return found

    def placed_on(self, name: str) -> list[tuple[PodKey, Pod, PodClass]]:
        """Gives what ``pods_on`` gives, each pod with its key and the class that ``classify_unbound`` gives it."""
        there = self._pods.get(name)
        if there is None:
            return []
        classes = [use.pod_class for use in there.uses]
        return list(zip(there.keys, there.pods, classes, strict=True))

    def node_of(self, key: PodKey) -> str | None:
        """Gives the name of the node that the pod is on or waits for, or None."""
        placed = self._placed.get(key)
        return None if placed is None else placed.name

    @property
    def facts(self) -> ClusterFacts:
        """Namespaces and feature gates."""
        return self._rows.facts

    @property
    def devices(self) -> Ledger | None:
        """Who has which device; None when the facts hold no devices. Not to be changed."""
        return self._rows.devices

    # ── Asking ──

    def feasible(self, pod_class: PodClass) -> BoolVector:
        """Whether a pod of the class passes all filters, for each row of ``node_names``; read-only."""
        rows = self._compacted()
        known = self._know(pod_class, rows)
        if known.version == self.version:
            return known.fits
        fits = known.judge(rows.n)
        fits.flags.writeable = False
        known.fits = fits
        known.version = self.version
        return fits

    def fits(self, pod_class: PodClass, node_name: str) -> bool:
        """Whether a pod of the class passes all filters on one node. Raises KeyError for an unknown node."""
        rows = self._compacted()
        row = rows.row_of[node_name]
        known = self._know(pod_class, rows)
        return bool(known.static_cells[row]) and known.has_room(row)

    def first_fit(self, pod_class: PodClass, start: int, blocked: BoolVector) -> int:
        """Gives the first row, going round once from ``start``, that takes the class, or -1.

        Args:
            pod_class: What is to be placed.
            start: Row to begin with, taken modulo the number of rows.
            blocked: Rows that are passed over.
        """
        rows = self._compacted()
        n = rows.n
        if n == 0:
            return -1
        known = self._know(pod_class, rows)
        if known.impossible:
            return -1
        start %= n
        static, closed = known.static_cells, memoryview(blocked)  # type: ignore[arg-type]  # numpy arrays have a buffer
        # A few single looks first: most pods find their place at once, and a look is cheaper than a vector.
        for row in range(start, min(start + _SCALAR_ROWS, n)):
            if static[row] and not closed[row] and known.has_room(row):
                return row
        open_rows = self.feasible(pod_class) & ~blocked
        for first, last in ((start, n), (0, start)):
            if first < last:
                row = first + int(open_rows[first:last].argmax())
                if open_rows[row]:
                    return row
        return -1

    def first_refusal(self, pod_class: PodClass, node_name: str) -> Refusal | None:
        """Says why a node does not take the class: what the scheduler's first failing plugin says.

        Raises: KeyError for an unknown node.
        """
        rows = self._compacted()
        row = rows.row_of[node_name]
        return explain.first_refusal(pod_class, rows, row)

    def amounts_refusal(self, pod_class: PodClass, node_name: str) -> Refusal | None:
        """Says what a node is short of, whatever other plugins say; None when of nothing. Raises KeyError for an unknown node."""
        rows = self._compacted()
        return explain.amounts_refusal(pod_class, rows, rows.row_of[node_name])

    def refused_everywhere(self, pod_class: PodClass) -> Refusal | None:
        """Gives the refusal that holds for all nodes alike, or None."""
        return explain.refused_everywhere(pod_class, self._compacted())

    def refusals(self, pod_class: PodClass) -> dict[str, int]:
        """Counts the reasons of the first failing plugin over all nodes, as FailedScheduling does.

        The order is that of the plugins; nodes with several reasons count in each of them.
        """
        return explain.count_refusals(pod_class, self._compacted())

    def refusals_by_plugin(self, pod_class: PodClass) -> dict[str, dict[str, Refusal]]:
        """Gives what every plugin says by itself: plugin to node name (``*``: all alike) to refusal."""
        return explain.refusals_by_plugin(pod_class, self._compacted())

    def minds_others(self, pod_class: PodClass) -> bool:
        """Whether the verdict on a node depends on pods of other nodes too."""
        return bool(self._know(pod_class, self._compacted()).judges)

    def fits_alone(self, pod_class: PodClass) -> BoolVector:
        """Whether a pod of the class passes on each node but for what it minds of pods elsewhere; a fresh vector."""
        rows = self._compacted()
        return self._know(pod_class, rows).judge_alone(rows.n)

    def topology_keys(self, pod_class: PodClass) -> tuple[str, ...] | None:
        """Gives the labels by which pods of other nodes bear on the class; None when a plugin cannot say."""
        keys = {term.topology_key for term in pod_class.affinity}
        for judge in self._know(pod_class, self._compacted()).judges:
            if judge.terms is None:
                return None
            keys.update(term.topology_key for term in judge.terms)
        return tuple(sorted(keys - {""}))

    def asks_for_devices(self, pod_class: PodClass) -> bool:
        """Whether devices are given to pods of the class, so that each changes what the next may have."""
        use, ledger = pod_class.devices, self._rows.devices
        return use is not None and ledger is not None and asks_for_devices(use, ledger)

    def device_failure(self, pod_class: PodClass) -> str:
        """Gives what looking for devices fails with on the first node that passes all else; empty for nothing."""
        rows = self._compacted()
        known = self._know(pod_class, rows)
        for judge in known.judges:
            if not isinstance(judge, DeviceJudge):
                continue
            others = [one for one in known.judges if one is not judge]
            for row in np.flatnonzero(known.judge_alone(rows.n)).tolist():
                if all(one.node(row) for one in others) and (failure := judge.failure(row)):
                    return failure
        return ""

    def only_tightens(self, pod_class: PodClass) -> bool:
        """Whether a class that fits nowhere will not fit as long as pods are only added."""
        return self._know(pod_class, self._compacted()).only_tightens

    def add_guards(self, pod_classes: Iterable[PodClass]) -> None:
        """Makes the counts of the classes' anti-affinity, as ``prepare`` does: what is known of others is found anew but once."""
        for pod_class in pod_classes:
            self._add_guards(pod_class)

    def prepare(self, pod_class: PodClass) -> Known:
        """Gives what is known about a class as nodes are now; makes the counts that it and its guards need."""
        rows = self._compacted()
        self._add_guards(pod_class)
        return self._know(pod_class, rows)

    def forget_classes(self) -> None:
        """Drops what was found out about classes; what is asked for is found anew.

        For a snapshot that is kept long and asked about ever new classes. Raises RuntimeError on a fork.
        """
        if self._marks:
            raise RuntimeError(
                "forget_classes on a fork: revert would not find the counts, call it before Snapshot.fork()"
            )
        self._verdicts.clear()
        if self._rows.counts:
            self._rows.forget_counts()
            self._layout = self._stamp()

    def counted_in(self, pod_class: PodClass) -> list[DomainTable]:
        """Gives the tables that one more pod of the class adds one to, of those that judges read; one may come twice."""
        columns = self._compacted().counting(pod_class, terminating=False)
        return [table for column in columns for table in column.tables.values()]

    def static_part(self, pod_class: PodClass) -> BoolVector:
        """Whether each node passes the filters that look at node objects alone; read-only."""
        rows = self._compacted()
        passes: BoolVector = _view(
            self._verdicts.static(pod_class, rows, self._lineage_of(pod_class)), rows.n
        )
        return passes

    def stock(self, name: str) -> dict[ColumnKey, int]:
        """Gives what is left of everything on one node. Raises KeyError for an unknown node."""
        row = self._compacted().row_of[name]
        return {key: int(column.cells[row]) for key, column in self._rows.columns.items()}

    # ── Inside ──

    def _know(self, pod_class: PodClass, rows: Rows) -> Known:
        lineage, layout = self._lineage, self._layout
        if pod_class.claims or pod_class.devices is not None:
            lineage, layout = self._lineage_of(pod_class), max(layout, self._facts_version(pod_class))
        return self._verdicts.know(pod_class, rows, lineage, layout, self._columns_version)

    def _lineage_of(self, pod_class: PodClass) -> Lineage:
        """The lineage by which a class is judged: of nodes, or of the volumes or devices that it asks for."""
        changed = self._facts_version(pod_class)
        return Lineage(changed, ()) if changed > self._lineage.version else self._lineage

    def _facts_version(self, pod_class: PodClass) -> int:
        return max(
            self._volume_version if pod_class.claims else 0,
            self._device_version if pod_class.devices is not None else 0,
        )


def _view(column: Any, n: int) -> Any:
    view = column[:n]
    view.flags.writeable = False
    return view
