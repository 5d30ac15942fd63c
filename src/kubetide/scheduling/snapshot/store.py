"""The content of a snapshot and its changes: rows of nodes, and the pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.devices.facts import Devices
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.devices.placing import put_on, take_off
from kubetide.scheduling.pods.classes import scored_use_of, use_of
from kubetide.scheduling.pods.pod_class import PodClass, Use
from kubetide.scheduling.pods.similar import same_for_scheduling
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.lineage import Lineage
from kubetide.scheduling.snapshot.log import ChangeLog
from kubetide.scheduling.snapshot.node_pods import NodePods, PodChanges, PodKey
from kubetide.scheduling.snapshot.volumes import Volumes
from kubetide.scheduling.thresholds import COUNT_COLUMNS_BEFORE_FORGETTING, PODS_CHARGED_ONE_BY_ONE
from kubetide.units.vectors import Int64Vector


class SnapshotStore:
    """Nodes as rows, and the pods on them. The log records how to undo each change.

    Attributes:
        rows: All rows, those of removed nodes too; readers take ``compacted``.
        pods: By node name, also of nodes that are not here yet.
        placed: By pod, the pods of the node that it is on.
        layout: Another number once counts, domains or rows are other objects.
        columns_version: Another number once there are other columns.
        volume_version, device_version: The version at which such facts changed last.
    """

    def __init__(self, log: ChangeLog, facts: ClusterFacts, *, scored: bool) -> None:
        """Args: the log for changes; ``scored``: whether to count what score plugins read of pods."""
        self._log = log
        self._scored = scored
        self._use_of = scored_use_of if scored else use_of
        self.volume_version = 0
        self.device_version = 0
        self.layout = 0
        self._most_counts = COUNT_COLUMNS_BEFORE_FORGETTING
        self.columns_version = 0
        self.placed: dict[PodKey, NodePods] = {}
        self.pods: dict[str, NodePods] = {}
        self.pod_changes = PodChanges()
        self.rows = Rows(facts=facts, pods=self.pods)
        self._dead: dict[int, None] = {}
        self._open_ledger(facts.devices)

    # ── Changing ──

    def set_facts(self, facts: ClusterFacts) -> None:
        """Replace namespaces and feature gates. Raises RuntimeError on a fork."""
        self._log.check_no_fork("set_facts")
        if facts == self.rows.facts:
            return
        devices_changed = facts.devices != self.rows.facts.devices
        self.rows.facts = facts
        self.rows.drop_counts()
        if devices_changed:
            self._open_ledger(facts.devices)
        self._touch_nodes()
        self.layout = self._log.stamp()

    def set_volumes(self, volumes: Volumes | None) -> None:
        """Replace volume objects: only classes with claims are evaluated again. Raises RuntimeError on a fork."""
        self._log.check_no_fork("set_volumes")
        self.rows.facts = replace(self.rows.facts, volumes=volumes)
        self._log.version = self.volume_version = self._log.stamp()

    def set_devices(self, devices: Devices | None) -> None:
        """Replace slices, claims and classes: only classes that ask for devices are evaluated again. Raises RuntimeError on a fork."""
        self._log.check_no_fork("set_devices")
        if devices is self.rows.facts.devices:
            return
        self.rows.facts = replace(self.rows.facts, devices=devices)
        self._open_ledger(devices)
        self._log.version = self.device_version = self._log.stamp()

    def set_device_templates(self, templates: Mapping[str, tuple[ResourceSlice, ...]]) -> None:
        """Set the slices that copies of templates bring, by the template's name. Raises RuntimeError on a fork."""
        self._log.check_no_fork("set_device_templates")
        devices, ledger = self.rows.facts.devices, self.rows.devices
        if devices is None or ledger is None or devices.templates == templates:
            return
        self.rows.facts = replace(self.rows.facts, devices=replace(devices, templates=templates))
        ledger.take_templates(templates)

    def set_node(self, node: Node) -> None:
        """Add or update a node; its pods stay."""
        name = node.metadata.name
        rows = self.rows
        row = rows.row_of.get(name)
        if row is None:
            rows = self.compacted()
            waiting = self.pods[name].uses if name in self.pods else ()
            for use in waiting:
                self.add_guards(use.pod_class)
            self.add_columns(rows.missing(node))
            row = rows.append(node)
            self._log.record(self._pop)
            self._nodes_changed()
            for use in waiting:
                self._charge(row, use, 1)
                self._log.record(self._uncharge, row, use, -1)
            self._touch_nodes()
            return
        before = rows.nodes[row]
        if before is node:
            return
        if same_for_scheduling(before, node):
            rows.nodes[row] = node
            self._log.record(rows.nodes.__setitem__, row, before)
            self._log.touch()
            return
        self.add_columns(rows.missing(node))
        rows.write(row, node)
        self._log.record(self._rewrite, row, before)
        self._touch_nodes()

    def remove_node(self, name: str) -> None:
        """Remove a node, if it is known; its pods wait for it to return."""
        rows = self.rows
        row = rows.row_of.pop(name, None)
        if row is None:
            return
        self._dead[row] = None
        self._log.record(self._revive, name, row)
        self._touch_nodes()

    def add_pod(
        self, pod: Pod, node_name: str, pod_class: PodClass | None = None, key: PodKey | None = None
    ) -> bool:
        """Put a pod on a node, replacing the pod of its key on any node; return whether other pods may be affected."""
        if key is None:
            key = (pod.metadata.namespace, pod.metadata.name)
        use = self._use_of(pod, self.rows.facts.minor, pod_class)
        pod_class = use.pod_class
        there = self.placed.get(key)
        if there is not None:
            at = there.place_of(key)
            if there.name == node_name and _takes_alike(there.uses[at], use):
                return self._put_instead(there, at, pod, use)
            self._remove(there, at)
        if len(self.rows.counts) > self._most_counts and not self._log.is_forked:
            self.forget_counts()
            # Three times as many again as must stay, so that a cluster full of guards does not forget at every pod.
            self._most_counts = max(COUNT_COLUMNS_BEFORE_FORGETTING, 4 * len(self.rows.counts))
        self.add_guards(pod_class)
        there = self._append(node_name, key, pod, use)
        row = self.rows.row_of.get(node_name)
        if row is not None:
            self._charge(row, use, 1)
        self._log.record(self._take_back, there, row, use)
        if pod_class.devices is not None:
            self._give_devices(node_name, key, pod, use)
        self._log.touch()
        return True

    def add_pods(self, pods: Sequence[tuple[PodKey, Pod, str]]) -> None:
        """Put pods on nodes; equal to ``add_pod`` one by one, with summed amounts. Raises RuntimeError on a fork."""
        if self._log.is_forked:
            raise RuntimeError("add_pods on a fork: many pods cannot be taken back, use Snapshot.add_pod()")
        minor = self.rows.facts.minor
        uses = [self._use_of(pod, minor) for _, pod, _ in pods]
        for pod_class in {id(use.pod_class): use.pod_class for use in uses}.values():
            self.add_guards(pod_class)
        row_of, placed, by_node = self.rows.row_of, self.placed, self.pods
        came: dict[int, tuple[Use, list[int]]] = {}
        for (key, pod, node_name), use in zip(pods, uses, strict=True):
            if key in placed:
                self._charge_all(came)
                self.add_pod(pod, node_name, use.pod_class, key)
                continue
            there = by_node.get(node_name)
            if there is None:
                there = by_node[node_name] = NodePods(node_name, self.pod_changes)
            there.append(key, pod, use)
            placed[key] = there
            row = row_of.get(node_name)
            if row is not None:
                # By identity: those who share a use are many, and what each of the others takes is added too.
                of_use = came.get(id(use))
                if of_use is None:
                    of_use = came[id(use)] = (use, [])
                of_use[1].append(row)
            if use.pod_class.devices is not None:
                self._give_devices(node_name, key, pod, use)
        self._charge_all(came)
        self._log.touch()

    def remove_pod(self, key: PodKey) -> None:
        """Remove a pod from its node, if it is on one."""
        there = self.placed.get(key)
        if there is not None:
            self._remove(there, there.place_of(key))

    def add_copies(self, pod_class: PodClass, rows: Int64Vector, numbers: Int64Vector) -> None:
        """Put nameless pods of a class on rows, ``numbers`` on each. Raises RuntimeError without a fork."""
        if not self._log.is_forked:
            raise RuntimeError("add_copies without fork: nameless pods cannot be taken out but by revert")
        self.add_columns(key for key, _ in pod_class.charges if key not in self.rows.columns)
        self.rows.add_copies(pod_class, rows, numbers, 1)
        self._log.record(self.rows.add_copies, pod_class, rows, numbers, -1)
        self._log.touch()

    # ── What questions and copies need ──

    def compacted(self) -> Rows:
        """Return the rows without removed nodes; every reader and every new row starts here."""
        if self._dead:
            rows, dead = self.rows, self._dead
            self.rows, self._dead = rows.without(dead), {}
            self.layout = self._log.stamp()
            self._log.record(self._uncompact, rows, dead)
        return self.rows

    def add_guards(self, pod_class: PodClass) -> None:
        """Build the counts of the class's anti-affinity, and those that scoring reads; they stay."""
        if pod_class.anti_affinity and self.rows.add_guards(pod_class):
            self.layout = self._log.stamp()
        if self._scored and pod_class.preferences.asking:
            self.rows.add_asks(pod_class)

    def forget_counts(self) -> None:
        """Drop all counts; they are rebuilt on use."""
        if self.rows.counts:
            self.rows.forget_counts()
            self.layout = self._log.stamp()

    def add_columns(self, keys: Iterable[Any]) -> None:
        """Add columns, all zero."""
        for key in keys:
            self.rows.add_column(key)
            self.columns_version = self._log.stamp()
            self._log.record(self._drop_column, key)

    # ── Inside ──

    def _put_instead(self, there: NodePods, at: int, pod: Pod, use: Use) -> bool:
        """Put a pod in place of one that takes the same; return whether other pods may be affected."""
        before, pod_before = there.uses[at], there.pods[at]
        changes = before is not use and before != use
        if changes:
            self.add_guards(use.pod_class)
            self._recount(there.name, before, use)
            self._log.record(self._recount, there.name, use, before)
        if changes or pod_before is not pod:
            there.put_instead(at, pod, use)
            self._log.record(there.put_instead, at, pod_before, before)
            self._log.touch()
        return changes

    def _recount(self, node_name: str, before: Use, now: Use) -> None:
        rows = self.rows
        row = rows.row_of.get(node_name)
        if row is not None and rows.counts:
            rows.count(row, before, -1)
            rows.count(row, now, 1)

    def _remove(self, there: NodePods, at: int) -> None:
        key, pod, use = there.pop(at)
        del self.placed[key]
        if not there.keys and not self._log.is_forked:
            del self.pods[there.name]
        row = self.rows.row_of.get(there.name)
        if row is not None:
            self._charge(row, use, -1)
        # Changes are taken back in the opposite order, so the place will be the same.
        self._log.record(self._put_back, there, at, key, pod, use, row)
        devices = use.pod_class.devices
        if devices is not None and self.rows.devices is not None:
            for undo in take_off(self.rows.devices, devices, key):
                self._log.record(undo)
        self._log.touch()

    def _append(self, node_name: str, key: PodKey, pod: Pod, use: Use) -> NodePods:
        there = self.pods.get(node_name)
        if there is None:
            there = self.pods[node_name] = NodePods(node_name, self.pod_changes)
        there.append(key, pod, use)
        self.placed[key] = there
        return there

    def _charge_all(self, came: dict[int, tuple[Use, list[int]]]) -> None:
        """Subtract what so many pods take from their rows, and clear the list."""
        for use, given in came.values():
            if len(given) <= PODS_CHARGED_ONE_BY_ONE:
                for row in given:
                    self._charge(row, use, 1)
                continue
            self.add_columns([key for key, _ in use.charges if key not in self.rows.columns])
            rows, numbers = np.unique(np.array(given, np.int64), return_counts=True)
            self.rows.charge_many(rows, use, numbers)
        came.clear()

    def _open_ledger(self, devices: Devices | None) -> None:
        self.rows.devices = None if devices is None else Ledger(devices)
        for name, there in self.pods.items():
            for key, pod, use in zip(there.keys, there.pods, there.uses, strict=True):
                if use.pod_class.devices is not None:
                    self._give_devices(name, key, pod, use)

    def _give_devices(self, node_name: str, key: PodKey, pod: Pod, use: Use) -> None:
        devices, ledger = use.pod_class.devices, self.rows.devices
        if ledger is None or devices is None:
            return
        row = self.rows.row_of.get(node_name)
        # Whoever is moved in a simulation has left its devices where it was.
        bound = pod.spec.node_name == node_name
        node = None if row is None else self.rows.nodes[row]
        for undo in put_on(ledger, devices, key, node, bound=bound):
            self._log.record(undo)

    def _charge(self, row: int, use: Use, sign: int) -> None:
        rows = self.rows
        columns = rows.columns
        for key, _ in use.charges:
            if key not in columns:
                self.add_columns((key,))
        rows.charge(row, use.charges, sign)
        if rows.counts:
            rows.count(row, use, sign)

    def _touch_nodes(self) -> None:
        log = self._log
        log.touch()
        log.lineage = Lineage(log.version, ())
        self._nodes_changed()

    def _nodes_changed(self) -> None:
        """Drop what was made of the domains of labels: they may be others now."""
        if self.rows.counts:
            self.rows.drop_tables()
            self.layout = self._log.stamp()

    # ── Undoing: each takes back one change and records nothing ──

    def _pop(self) -> None:
        self.rows.pop()
        self._nodes_changed()

    def _rewrite(self, row: int, node: Node) -> None:
        self.rows.write(row, node)
        self._nodes_changed()

    def _uncharge(self, row: int, use: Use, sign: int) -> None:
        rows = self.rows
        rows.charge(row, use.charges, sign)
        if rows.counts:
            rows.count(row, use, sign)

    def _drop_column(self, key: Any) -> None:
        self.rows.drop_column(key)
        self.columns_version = self._log.stamp()

    def _revive(self, name: str, row: int) -> None:
        del self._dead[row]
        self.rows.row_of[name] = row
        self.rows.forget_kinds()  # made while the node was gone, they would lack its pods
        self._nodes_changed()

    def _uncompact(self, rows: Rows, dead: dict[int, None]) -> None:
        self.rows, self._dead = rows, dead
        self.layout = self._log.stamp()

    def _take_back(self, there: NodePods, row: int | None, use: Use) -> None:
        if row is not None:
            self._uncharge(row, use, -1)
        key, _, _ = there.pop(-1)
        del self.placed[key]
        if not there.keys:
            del self.pods[there.name]

    def _put_back(self, there: NodePods, at: int, key: PodKey, pod: Pod, use: Use, row: int | None) -> None:
        if row is not None:
            self._uncharge(row, use, 1)
        there.insert(at, key, pod, use)
        self.placed[key] = there
        self.pods[there.name] = there


def _takes_alike(before: Use, now: Use) -> bool:
    """Return whether a pod takes from its node what it took before."""
    if before is now:
        return True
    if before.charges != now.charges:
        return False
    return (before.pod_class.devices is None and now.pod_class.devices is None) or before == now
