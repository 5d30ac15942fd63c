"""The snapshot: which pods are on which nodes, what is left, and what would fit.

Kept up to date in place, from watch events; ``fork`` and ``revert`` try things out at the cost of
what was changed, not of the cluster's size. Rows are nodes in the order in which they were added; a
node that is removed and added again goes to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import explain
from kubetide.scheduling.node_selection import HOSTNAME
from kubetide.scheduling.pod_class import Charges, ColumnKey, PodClass, charges_on_node
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.rows import BoolVector, Int64Vector, Rows
from kubetide.scheduling.verdicts import Known, Verdicts

PodKey = tuple[str, str]
"""(namespace, name)"""

_SCALAR_ROWS = 32


class _Mark(NamedTuple):
    log_length: int
    version: int
    static_version: int


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
        charges = charges_on_node(pod)
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
        known = self._know(pod_class, rows)
        if n == 0 or known.impossible:
            return -1
        start %= n
        static = known.static_cells
        # A few single looks first: most pods find their place at once, and a look is cheaper than a vector.
        for row in range(start, min(start + _SCALAR_ROWS, n)):
            if static[row] and not blocked[row] and known.has_room(row):
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

    def refusals(self, pod_class: PodClass) -> dict[str, int]:
        """Counts the reasons of the first failing plugin over all nodes, as FailedScheduling does.

        The order is that of the plugins; nodes with several reasons count in each of them.
        """
        return explain.count_refusals(pod_class, self._compacted())

    def static_part(self, pod_class: PodClass) -> BoolVector:
        """Whether each node passes the filters that look at node objects alone; read-only."""
        rows = self._compacted()
        passes: BoolVector = _view(self._know(pod_class, rows).static, rows.n)
        return passes

    def stock(self, name: str) -> dict[ColumnKey, int]:
        """Gives what is left of everything on one node. Raises KeyError for an unknown node."""
        row = self._compacted().row_of[name]
        return {key: int(column.cells[row]) for key, column in self._rows.columns.items()}

    # ── Inside ──

    def _know(self, pod_class: PodClass, rows: Rows) -> Known:
        return self._verdicts.know(pod_class, rows, self._static_version, self._layout)

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


def _same_for_scheduling(one: Node, other: Node) -> bool:
    """Whether nothing changed that columns hold: the case of every heartbeat."""
    return (
        one.spec == other.spec
        and one.metadata.labels == other.metadata.labels
        and one.status.allocatable == other.status.allocatable
    )


def _view(column: Any, n: int) -> Any:
    view = column[:n]
    view.flags.writeable = False
    return view
