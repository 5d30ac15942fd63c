"""The snapshot: which pods are on which nodes, what is free, and what would fit.

Kept up to date in place, from watch events; ``fork`` and ``revert`` try things out at the cost of
what was changed, not of the cluster's size. Rows are nodes in the order in which they were added; a
node that is removed and added again goes to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.scheduling import explain
from kubetide.scheduling.columns.counting import DomainTable
from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.scheduling.devices.claims import asks_for_devices
from kubetide.scheduling.devices.facts import Devices
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import ColumnKey, PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.copies import TemplateCopies
from kubetide.scheduling.snapshot.log import ChangeLog
from kubetide.scheduling.snapshot.node_pods import PodKey
from kubetide.scheduling.snapshot.store import SnapshotStore
from kubetide.scheduling.snapshot.verdicts import Known, Verdicts
from kubetide.scheduling.snapshot.volumes import Volumes
from kubetide.units.vectors import BoolVector, Int64Vector


class Snapshot:
    """Nodes, the pods on them, and the columns that filters read.

    Made of a store of rows and pods, a change log that forks and reverts, verdicts on classes, and copies of
    templates. Pods may arrive before their node: they wait by its name and count as soon as it is there.
    Readers get read-only views that hold until the next change.
    """

    def __init__(self, facts: ClusterFacts | None = None, *, scored: bool = False) -> None:
        """Args: the cluster facts that filters read; ``scored``: whether to count what score plugins read of pods."""
        self._log = ChangeLog()
        self._store = SnapshotStore(self._log, facts or ClusterFacts(), scored=scored)
        self._copies = TemplateCopies(self._store, self._log)
        self._verdicts = Verdicts(self._store, self._log)

    @property
    def version(self) -> int:
        """A number that changes with every change; ``revert`` restores the number before the fork."""
        return self._log.version

    @property
    def layout(self) -> int:
        """A number that changes when tables of counts are replaced by other objects, also inside a fork."""
        return self._store.layout

    # ── Trying out ──

    def fork(self) -> None:
        """Begin a fork; forks nest."""
        self._log.fork()

    def revert(self) -> None:
        """Undo everything since the last fork. Raises RuntimeError without one."""
        self._log.revert()

    def commit(self) -> None:
        """Keep everything since the last fork. Raises RuntimeError without one."""
        self._log.commit()

    # ── Changing ──

    def set_facts(self, facts: ClusterFacts) -> None:
        """Replace namespaces and feature gates. Raises RuntimeError on a fork."""
        self._store.set_facts(facts)

    def set_volumes(self, volumes: Volumes | None) -> None:
        """Replace volume objects: only classes with claims are evaluated again. Raises RuntimeError on a fork."""
        self._store.set_volumes(volumes)

    def set_devices(self, devices: Devices | None) -> None:
        """Replace slices, claims and classes of devices, as ``set_volumes`` does volumes. Raises RuntimeError on a fork."""
        self._store.set_devices(devices)

    def set_device_templates(self, templates: Mapping[str, tuple[ResourceSlice, ...]]) -> None:
        """Set the slices that copies of templates bring, by the template's name. Raises RuntimeError on a fork."""
        self._store.set_device_templates(templates)

    def set_node(self, node: Node) -> None:
        """Add or update a node; its pods stay."""
        self._store.set_node(node)

    def remove_node(self, name: str) -> None:
        """Remove a node, if it is known; its pods wait for it to return."""
        self._store.remove_node(name)

    def add_pod(
        self, pod: Pod, node_name: str, pod_class: PodClass | None = None, key: PodKey | None = None
    ) -> bool:
        """Put a pod on a node, replacing the pod of its key on any node; return whether other pods may be affected.

        The class, as ``classify_unbound`` returns it, and the key are computed where they are not given.
        """
        return self._store.add_pod(pod, node_name, pod_class, key)

    def add_pods(self, pods: Sequence[tuple[PodKey, Pod, str]]) -> None:
        """Put pods on nodes, given by name; equal to ``add_pod`` one by one, for many new pods.

        Raises: RuntimeError on a fork.
        """
        self._store.add_pods(pods)

    def remove_pod(self, key: PodKey) -> None:
        """Remove a pod from its node, if it is on one."""
        self._store.remove_pod(key)

    def add_copies(self, pod_class: PodClass, rows: Int64Vector, numbers: Int64Vector) -> None:
        """Put nameless pods of a class on rows, for an estimate: ``pods_on`` does not list them.

        Only on a fork, and after ``prepare`` for every class that will be asked about on it.
        """
        self._store.add_copies(pod_class, rows, numbers)

    def add_template(self, template: Node, daemon_pods: Sequence[Pod], name: str) -> None:
        """Add a copy of a template under a name, which is also its hostname, with its DaemonSet pods."""
        self._copies.add(template, daemon_pods, (name,))

    def add_templates(self, template: Node, daemon_pods: Sequence[Pod], names: Sequence[str]) -> None:
        """Add copies of a template under names, which are also their hostnames, each with its DaemonSet pods."""
        self._copies.add(template, daemon_pods, names)

    # ── Reading ──

    @property
    def node_names(self) -> Sequence[str]:
        """Node names in row order. Not to be changed."""
        return self._store.compacted().names

    @property
    def allocatable(self) -> Mapping[str, Int64Vector]:
        """The allocatable amounts of each node, by resource: milli-CPU, bytes, counts."""
        rows = self._store.compacted()
        return {k: _view(c.allocatable, rows.n) for k, c in rows.columns.items() if isinstance(k, str)}

    def names(self) -> Iterator[str]:
        """Yield all names that a new node must not have: of nodes, hostnames, and nodes that pods wait for."""
        rows = self._store.compacted()
        yield from rows.names
        yield from self._store.pods
        for node in rows.nodes:
            yield labels_of(node).get(HOSTNAME, "")

    @property
    def free(self) -> Mapping[str, Int64Vector]:
        """The free amounts of each node, by resource; negative where over-committed."""
        rows = self._store.compacted()
        return {k: _view(c.free, rows.n) for k, c in rows.columns.items() if isinstance(k, str)}

    def column(self, resource: str) -> tuple[Int64Vector, Int64Vector] | None:
        """Return the allocatable and free amounts of one resource; None if nobody offers or requests it."""
        rows = self._store.compacted()
        column = rows.columns.get(resource)
        return None if column is None else (_view(column.allocatable, rows.n), _view(column.free, rows.n))

    @property
    def requested(self) -> Mapping[str, Int64Vector]:
        """The amounts that the pods on each node take, by resource."""
        rows = self._store.compacted()
        taken: dict[str, Int64Vector] = {}
        for key, column in rows.columns.items():
            if isinstance(key, str):
                taken[key] = column.allocatable[: rows.n] - column.free[: rows.n]
                taken[key].flags.writeable = False
        return taken

    @property
    def unschedulable(self) -> BoolVector:
        """Whether each node is cordoned by ``spec.unschedulable``."""
        rows = self._store.compacted()
        cordoned: BoolVector = _view(rows.unschedulable, rows.n)
        return cordoned

    def __contains__(self, name: str) -> bool:
        return name in self._store.rows.row_of

    def __len__(self) -> int:
        return len(self._store.rows.row_of)

    def row(self, name: str) -> int:
        """Return the node's row. Raises KeyError for an unknown node."""
        return self._store.compacted().row_of[name]

    def rows_of(self, names: Iterable[str]) -> list[int]:
        """Return the row of each node. Raises KeyError for an unknown node."""
        row_of = self._store.compacted().row_of
        return [row_of[name] for name in names]

    def node(self, name: str) -> Node:
        """Return the node object. Raises KeyError for an unknown node."""
        rows = self._store.rows
        return rows.nodes[rows.row_of[name]]

    def pods_on(self, name: str) -> tuple[Pod, ...]:
        """Return the pods on (or waiting for) a node, in order of addition."""
        there = self._store.pods.get(name)
        if there is None:
            return ()
        found = there.listed
        if found is None:
            found = there.listed = tuple(there.pods)
        return found

    @property
    def pods_stamp(self) -> int:
        """The number of the last change of pods on nodes; undoing a change counts as a change."""
        return self._store.pod_changes.stamp

    def pods_changed_since(self, stamp: int) -> list[str]:
        """Return the nodes whose pods have changed since, latest changes first."""
        return self._store.pod_changes.since(stamp)

    def placed_on(self, name: str) -> list[tuple[PodKey, Pod, PodClass]]:
        """Return the pods of ``pods_on``, each with its key and its ``classify_unbound`` class."""
        there = self._store.pods.get(name)
        if there is None:
            return []
        classes = [use.pod_class for use in there.uses]
        return list(zip(there.keys, there.pods, classes, strict=True))

    def node_of(self, key: PodKey) -> str | None:
        """Return the name of the node that the pod is on or waits for, or None."""
        placed = self._store.placed.get(key)
        return None if placed is None else placed.name

    @property
    def facts(self) -> ClusterFacts:
        """Namespaces and feature gates."""
        return self._store.rows.facts

    @property
    def devices(self) -> Ledger | None:
        """The allocations of devices; None if the facts hold no devices. Not to be changed."""
        return self._store.rows.devices

    # ── Asking ──

    def feasible(self, pod_class: PodClass) -> BoolVector:
        """Return whether a pod of the class passes all filters, for each row of ``node_names``; read-only."""
        rows = self._store.compacted()
        return self._verdicts.know(pod_class, rows).evaluate(rows.n, self._log.version)

    def fits(self, pod_class: PodClass, node_name: str) -> bool:
        """Return whether a pod of the class passes all filters on one node. Raises KeyError for an unknown node."""
        rows = self._store.compacted()
        row = rows.row_of[node_name]
        known = self._verdicts.know(pod_class, rows)
        return bool(known.static_cells[row]) and known.has_capacity(row)

    def first_fit(self, pod_class: PodClass, start: int, blocked: BoolVector) -> int:
        """Return the first row, going round once from ``start``, that accepts the class, or -1.

        Args:
            pod_class: What is to be placed.
            start: Row to begin with, taken modulo the number of rows.
            blocked: Rows that are passed over.
        """
        rows = self._store.compacted()
        n = rows.n
        if n == 0:
            return -1
        return self._verdicts.know(pod_class, rows).first_fit(n, self._log.version, start % n, blocked)

    def first_refusal(self, pod_class: PodClass, node_name: str) -> Refusal | None:
        """Return why a node rejects the class: the result of the scheduler's first failing plugin.

        Raises: KeyError for an unknown node.
        """
        rows = self._store.compacted()
        row = rows.row_of[node_name]
        return explain.first_refusal(pod_class, rows, row)

    def first_refusals(self, pod_class: PodClass, asked: Sequence[int]) -> dict[int, Refusal]:
        """Return the result of ``first_refusal`` for these rows, by row; nodes that accept the class are left out."""
        return explain.first_refusals(pod_class, self._store.compacted(), asked)

    def amounts_refusal(self, pod_class: PodClass, node_name: str) -> Refusal | None:
        """Return the short amounts of a node, whatever other plugins say; None for none. Raises KeyError if unknown."""
        rows = self._store.compacted()
        return explain.amounts_refusal(pod_class, rows, rows.row_of[node_name])

    def refused_everywhere(self, pod_class: PodClass) -> Refusal | None:
        """Return the rejection for all nodes, or None."""
        return explain.refused_everywhere(pod_class, self._store.compacted())

    def refusals(self, pod_class: PodClass, among: Int64Vector | None = None) -> dict[str, int]:
        """Return the counted reasons of the first failing plugin over all nodes, as in FailedScheduling.

        The order is that of the plugins; nodes with several reasons count in each of them. ``among`` are the rows that
        are asked; all of them without it.
        """
        return explain.diagnose(pod_class, self._store.compacted(), among).reasons

    def diagnose(self, pod_class: PodClass) -> explain.Diagnosis:
        """Return what ``refusals`` does, and on which nodes the removal of pods could help."""
        return explain.diagnose(pod_class, self._store.compacted())

    def refusals_by_plugin(self, pod_class: PodClass) -> dict[str, dict[str, Refusal]]:
        """Return every plugin's rejections independently: plugin to node name (``*``: all nodes) to rejection."""
        return explain.refusals_by_plugin(pod_class, self._store.compacted())

    def has_inter_pod_rules(self, pod_class: PodClass) -> bool:
        """Return whether the verdict on a node depends on pods of other nodes too."""
        return bool(self._verdicts.know(pod_class, self._store.compacted()).judges)

    def fits_alone(self, pod_class: PodClass) -> BoolVector:
        """Return whether a pod of the class passes on each node, ignoring rules about pods elsewhere; a new vector."""
        rows = self._store.compacted()
        return self._verdicts.know(pod_class, rows).evaluate_alone(rows.n)

    def topology_keys(self, pod_class: PodClass) -> tuple[str, ...] | None:
        """Return the topology keys by which pods of other nodes change the verdict; None if a plugin cannot say."""
        keys = {term.topology_key for term in pod_class.affinity}
        for judge in self._verdicts.know(pod_class, self._store.compacted()).judges:
            if judge.terms is None:
                return None
            keys.update(term.topology_key for term in judge.terms)
        return tuple(sorted(keys - {""}))

    def asks_for_devices(self, pod_class: PodClass) -> bool:
        """Return whether pods of the class get devices, so that each pod changes what is free for the next."""
        use, ledger = pod_class.devices, self._store.rows.devices
        return use is not None and ledger is not None and asks_for_devices(use, ledger)

    def device_failure(self, pod_class: PodClass) -> str:
        """Return the error of the device search on the first node that passes all other filters; empty for none."""
        rows = self._store.compacted()
        return self._verdicts.know(pod_class, rows).device_failure(rows.n)

    def only_tightens(self, pod_class: PodClass) -> bool:
        """Return whether a class that fits nowhere cannot fit while pods are only added."""
        return self._verdicts.know(pod_class, self._store.compacted()).only_tightens

    def add_guards(self, pod_classes: Iterable[PodClass]) -> None:
        """Build the counts of the classes' anti-affinity, as ``prepare`` does: for many classes at a time."""
        for pod_class in pod_classes:
            self._store.add_guards(pod_class)

    def prepare(self, pod_class: PodClass) -> Known:
        """Return the cached verdict of a class for the present nodes; build the counts that it needs."""
        rows = self._store.compacted()
        self._store.add_guards(pod_class)
        return self._verdicts.know(pod_class, rows)

    def forget_classes(self) -> None:
        """Drop the cached results of classes; they are recomputed on use.

        For a snapshot that lives long and is asked about ever new classes. Raises RuntimeError on a fork.
        """
        if self._log.is_forked:
            raise RuntimeError(
                "forget_classes on a fork: revert would not find the counts, call it before Snapshot.fork()"
            )
        self._verdicts.clear()
        self._store.forget_counts()

    def counted_in(self, pod_class: PodClass) -> list[DomainTable]:
        """Return the tables, among those that verdicts read, to which a pod of the class adds one; may repeat."""
        columns = self._store.compacted().counting(pod_class, terminating=False)
        return [table for column in columns for table in column.tables.values()]

    def static_part(self, pod_class: PodClass) -> BoolVector:
        """Return whether each node passes the filters that read node objects only; read-only."""
        rows = self._store.compacted()
        passes: BoolVector = _view(self._verdicts.static(pod_class, rows), rows.n)
        return passes

    def stock(self, name: str) -> dict[ColumnKey, int]:
        """Return all free amounts of one node. Raises KeyError for an unknown node."""
        row = self._store.compacted().row_of[name]
        return {key: int(column.cells[row]) for key, column in self._store.rows.columns.items()}


def _view(column: Any, n: int) -> Any:
    view = column[:n]
    view.flags.writeable = False
    return view
