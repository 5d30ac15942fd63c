"""The snapshot: which pods are on which nodes, what is left, and what would fit.

Kept up to date in place, from watch events; ``fork`` and ``revert`` try things out at the cost of
what was changed, not of the cluster's size. Rows are nodes in the order in which they were added; a
node that is removed and added again goes to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.filters.registry import CAPACITY_FILTERS, FILTERS, NODE_AFFINITY, STATIC_FILTERS
from kubetide.scheduling.node_selection import HOSTNAME
from kubetide.scheduling.pod_class import Charges, PodClass, charges_on_node
from kubetide.scheduling.refusal import ERROR, Refusal
from kubetide.scheduling.rows import BoolVector, Column, Int64Vector, Rows

PodKey = tuple[str, str]
"""(namespace, name)"""

# What kube-scheduler counts for nodes that PreFilter left out.
_LEFT_OUT = f"node(s) didn't satisfy plugin(s) [{NODE_AFFINITY.name}]"
_SCALAR_ROWS = 32
_MAX_CLASSES = 1 << 13


class _Mark(NamedTuple):
    log_length: int
    version: int
    static_version: int


class _Known:
    """What the snapshot has found out about one class, and at which versions."""

    __slots__ = (
        "fits",
        "gates",
        "impossible",
        "layout",
        "static",
        "static_cells",
        "static_version",
        "version",
    )

    def __init__(self) -> None:
        self.static_version = self.layout = self.version = -1
        self.impossible = False
        self.static: BoolVector = np.zeros(0, np.bool_)
        self.static_cells: memoryview = memoryview(b"")
        self.gates: list[tuple[Column, int]] = []
        self.fits: BoolVector = self.static


class Snapshot:
    """Nodes, the pods on them, and the columns that say what fits.

    Pods may arrive before their node: they wait by its name and count as soon as it is there.
    Readers get read-only views that hold until the next change.

    Attributes:
        version: Another number after every change; after ``revert`` the number of before the fork.
    """

    def __init__(self) -> None:
        self.version = 0
        self._static_version = 0
        self._layout = 0
        self._stamps = 0
        self._rows = Rows()
        self._dead: dict[int, None] = {}
        self._pods: dict[str, dict[PodKey, Pod]] = {}
        self._placed: dict[PodKey, tuple[str, Charges]] = {}
        self._log: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._marks: list[_Mark] = []
        self._known: dict[PodClass, _Known] = {}

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

    @property
    def free(self) -> Mapping[str, Int64Vector]:
        """What is left on each node, by resource; negative where over-committed."""
        rows = self._compacted()
        return {k: _view(c.free, rows.n) for k, c in rows.columns.items() if isinstance(k, str)}

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
        return tuple(self._pods.get(name, {}).values())

    def node_of(self, key: PodKey) -> str | None:
        """Gives the name of the node that the pod is on or waits for, or None."""
        placed = self._placed.get(key)
        return None if placed is None else placed[0]

    # ── Changing ──

    def set_node(self, node: Node) -> None:
        """Adds a node, or takes over what changed of it; its pods stay."""
        name = node.metadata.name
        rows = self._rows
        row = rows.row_of.get(name)
        if row is None:
            rows = self._compacted()
            self._add_columns(rows.missing(node))
            row = rows.append(node)
            self._record(rows.pop)
            for key in self._pods.get(name, {}):
                self._charge(row, self._placed[key][1], 1)
            self._touch(static=True)
            return
        before = rows.nodes[row]
        if before is node:
            return
        if _same_for_scheduling(before, node):
            rows.nodes[row] = node
            self._record(rows.nodes.__setitem__, row, before)
            self._touch()
            return
        self._add_columns(rows.missing(node))
        rows.write(row, node)
        self._record(rows.write, row, before)
        self._touch(static=True)

    def remove_node(self, name: str) -> None:
        """Removes a node, if it is here; its pods wait for it to come back."""
        rows = self._rows
        row = rows.row_of.pop(name, None)
        if row is None:
            return
        self._dead[row] = None
        self._record(self._revive, name, row)
        self._touch(static=True)

    def add_pod(self, pod: Pod, node_name: str) -> None:
        """Puts a pod on a node; a pod of the same key is replaced, wherever it is."""
        key = (pod.metadata.namespace, pod.metadata.name)
        self.add_pod_charged(pod, node_name, key, charges_on_node(pod))

    def add_pod_charged(self, pod: Pod, node_name: str, key: PodKey, charges: Charges) -> None:
        """``add_pod`` for callers that know what the pod takes."""
        placed = self._placed.get(key)
        if placed is not None:
            if placed == (node_name, charges):
                on_node = self._pods[node_name]
                if on_node[key] is not pod:
                    self._record(on_node.__setitem__, key, on_node[key])
                    on_node[key] = pod
                    self._touch()
                return
            self.remove_pod(key)
        on_node = self._pods.setdefault(node_name, {})
        on_node[key] = pod
        self._placed[key] = (node_name, charges)
        self._record(self._take_back, node_name, key)
        row = self._rows.row_of.get(node_name)
        if row is not None:
            self._charge(row, charges, 1)
        self._touch()

    def remove_pod(self, key: PodKey) -> None:
        """Takes a pod off its node, if it is on one."""
        placed = self._placed.pop(key, None)
        if placed is None:
            return
        node_name, charges = placed
        on_node = self._pods[node_name]
        if self._marks:
            # The old dict is kept as it is: reverting must bring back the order of the pods.
            self._pods[node_name] = {other: pod for other, pod in on_node.items() if other != key}
            self._record(self._put_back, key, placed, on_node)
        else:
            del on_node[key]
            if not on_node:
                del self._pods[node_name]
        row = self._rows.row_of.get(node_name)
        if row is not None:
            self._charge(row, charges, -1)
        self._touch()

    def add_template(self, template: Node, daemon_pods: Sequence[Pod], name: str) -> None:
        """Adds a copy of a template under a name, which is its hostname too, with its DaemonSet pods."""
        labels = {**(template.metadata.labels or {}), HOSTNAME: name}
        self.set_node(replace(template, metadata=replace(template.metadata, name=name, labels=labels)))
        for pod in daemon_pods:
            renamed = replace(pod.metadata, name=f"{pod.metadata.name}-{name}")
            self.add_pod(replace(pod, metadata=renamed), name)

    # ── Trying out ──

    def fork(self) -> None:
        """Starts trying out; forks nest."""
        self._marks.append(_Mark(len(self._log), self.version, self._static_version))

    def revert(self) -> None:
        """Undoes everything since the last fork. Raises RuntimeError without one."""
        if not self._marks:
            raise RuntimeError(
                "revert without fork: call Snapshot.fork() before changing what is to be undone"
            )
        mark = self._marks.pop()
        log = self._log
        while len(log) > mark.log_length:
            undo, arguments = log.pop()
            undo(*arguments)
        self.version = mark.version
        self._static_version = mark.static_version

    def commit(self) -> None:
        """Keeps everything since the last fork. Raises RuntimeError without one."""
        if not self._marks:
            raise RuntimeError("commit without fork: call Snapshot.fork() first")
        self._marks.pop()
        if not self._marks:
            self._log.clear()

    # ── Asking ──

    def feasible(self, pod_class: PodClass) -> BoolVector:
        """Whether a pod of the class passes all filters, for each row of ``node_names``; read-only."""
        rows = self._compacted()
        known = self._know(pod_class, rows)
        if known.version == self.version:
            return known.fits
        n = rows.n
        if known.impossible:
            fits = np.zeros(n, np.bool_)
        else:
            fits = known.static.copy()
            for column, minimum in known.gates:
                fits &= column.free[:n] >= minimum
        fits.flags.writeable = False
        known.fits = fits
        known.version = self.version
        return fits

    def fits(self, pod_class: PodClass, node_name: str) -> bool:
        """Whether a pod of the class passes all filters on one node. Raises KeyError for an unknown node."""
        rows = self._compacted()
        row = rows.row_of[node_name]
        known = self._know(pod_class, rows)
        return bool(known.static_cells[row]) and _room(known, row)

    def first_fit(self, pod_class: PodClass, start: int, blocked: BoolVector) -> int:
        """Gives the first row, going round once from ``start``, that takes the class, or -1.

        Args:
            pod_class: What is to be placed.
            start: Row to begin with, taken modulo the number of rows.
            blocked: Rows that are passed over.
        """
        rows = self._compacted()
        n = rows.n
        known = self._know(pod_class, rows)
        if n == 0 or known.impossible:
            return -1
        start %= n
        static = known.static_cells
        # A few single looks first: most pods find their place at once, and a look is cheaper than a vector.
        for row in range(start, min(start + _SCALAR_ROWS, n)):
            if static[row] and not blocked[row] and _room(known, row):
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
        everywhere = _refused_everywhere(pod_class)
        if everywhere is not None:
            return everywhere
        names = _named(pod_class)
        if names is not None and node_name not in names:
            detail = f"only {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} may be used"
            return Refusal(plugin=NODE_AFFINITY.name, code="", phase="PreFilterResult", detail=detail)
        for plugin in FILTERS:
            refusal = plugin.refuse(pod_class, rows, row)
            if refusal is not None:
                return refusal
        return None

    def refusals(self, pod_class: PodClass) -> dict[str, int]:
        """Counts the reasons of the first failing plugin over all nodes, as FailedScheduling does.

        The order is that of the plugins; nodes with several reasons count in each of them.
        """
        rows = self._compacted()
        everywhere = _refused_everywhere(pod_class)
        if everywhere is not None:
            return dict.fromkeys(everywhere.reasons, rows.n)
        counts: dict[str, int] = {}
        left = np.ones(rows.n, np.bool_)
        names = _named(pod_class)
        if names is not None:
            left[:] = False
            left[[rows.row_of[name] for name in names if name in rows.row_of]] = True
            _count(counts, _LEFT_OUT, rows.n - int(left.sum()))
        for plugin in FILTERS:
            failed = np.zeros(rows.n, np.bool_)
            for reason, mask in plugin.failures(pod_class, rows):
                _count(counts, reason, int(np.count_nonzero(mask & left)))
                failed |= mask
            left &= ~failed
        return counts

    # ── Inside ──

    def _know(self, pod_class: PodClass, rows: Rows) -> _Known:
        known = self._known.get(pod_class)
        if known is None:
            if len(self._known) >= _MAX_CLASSES:
                self._known.clear()
            known = self._known[pod_class] = _Known()
        if known.static_version != self._static_version:
            static = np.ones(rows.n, np.bool_)
            if _refused_everywhere(pod_class) is not None:
                static[:] = False
            for plugin in STATIC_FILTERS:
                passes = plugin.passes(pod_class, rows)
                if passes is not None:
                    static &= passes
            known.static, known.static_cells = static, memoryview(static)  # type: ignore[arg-type]  # numpy arrays have a buffer
            known.static_version = self._static_version
        if known.layout != self._layout:
            needs = [need for plugin in CAPACITY_FILTERS for need in plugin.needs(pod_class, rows)]
            # What no node has heard of no node offers.
            known.impossible = any(need.key not in rows.columns for need in needs)
            known.gates = [(rows.columns[key], least) for key, least in needs if key in rows.columns]
            known.layout = self._layout
        return known

    def _compacted(self) -> Rows:
        """The rows without removed nodes; every reader and every new row starts here."""
        if self._dead:
            rows, dead = self._rows, self._dead
            self._rows, self._dead = rows.without(dead), {}
            self._layout = self._stamp()
            self._record(self._uncompact, rows, dead)
        return self._rows

    def _charge(self, row: int, charges: Charges, sign: int) -> None:
        columns = self._rows.columns
        unknown = [key for key, _ in charges if key not in columns]
        if unknown:
            self._add_columns(unknown)
        self._rows.charge(row, charges, sign)
        self._record(self._rows.charge, row, charges, -sign)

    def _add_columns(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self._rows.add_column(key)
            self._layout = self._stamp()
            self._record(self._drop_column, key)

    def _touch(self, *, static: bool = False) -> None:
        self.version = self._stamp()
        if static:
            self._static_version = self.version

    def _stamp(self) -> int:
        """A number that was never used: versions of forks that were reverted do not come back."""
        self._stamps += 1
        return self._stamps

    # ── Undoing: each takes back one change and records nothing ──

    def _record(self, undo: Callable[..., None], *arguments: Any) -> None:
        if self._marks:
            self._log.append((undo, arguments))

    def _drop_column(self, key: Any) -> None:
        self._rows.drop_column(key)
        self._layout = self._stamp()

    def _revive(self, name: str, row: int) -> None:
        del self._dead[row]
        self._rows.row_of[name] = row

    def _uncompact(self, rows: Rows, dead: dict[int, None]) -> None:
        self._rows, self._dead = rows, dead
        self._layout = self._stamp()

    def _take_back(self, node_name: str, key: PodKey) -> None:
        del self._placed[key]
        on_node = self._pods[node_name]
        del on_node[key]
        if not on_node:
            del self._pods[node_name]

    def _put_back(self, key: PodKey, placed: tuple[str, Charges], on_node: dict[PodKey, Pod]) -> None:
        self._placed[key] = placed
        self._pods[placed[0]] = on_node


def _room(known: _Known, row: int) -> bool:
    if known.impossible:
        return False
    for column, minimum in known.gates:  # noqa: SIM110  # the hot loop: a generator costs twice as much
        if column.cells[row] < minimum:
            return False
    return True


def _refused_everywhere(pod_class: PodClass) -> Refusal | None:
    if pod_class.error:
        return Refusal(
            plugin="NodeResourcesFit",
            reasons=(pod_class.error,),
            code=ERROR,
            phase="PreFilter",
            detail=pod_class.error,
        )
    restriction = NODE_AFFINITY.restriction(pod_class)
    return restriction if isinstance(restriction, Refusal) else None


def _named(pod_class: PodClass) -> tuple[str, ...] | None:
    restriction = NODE_AFFINITY.restriction(pod_class)
    return restriction if isinstance(restriction, tuple) else None


def _same_for_scheduling(one: Node, other: Node) -> bool:
    """Whether nothing changed that columns hold: the case of every heartbeat."""
    return (
        one.spec == other.spec
        and one.metadata.labels == other.metadata.labels
        and one.status.allocatable == other.status.allocatable
    )


def _count(counts: dict[str, int], reason: str, number: int) -> None:
    if number:
        counts[reason] = counts.get(reason, 0) + number


def _view(column: Any, n: int) -> Any:
    view = column[:n]
    view.flags.writeable = False
    return view
