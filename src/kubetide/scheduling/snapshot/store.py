"""What a snapshot holds and how it changes: rows, pods, and a log that takes changes back."""

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
from kubetide.scheduling.pods.classes import use_of
from kubetide.scheduling.pods.pod_class import PodClass, Use
from kubetide.scheduling.pods.similar import same_for_scheduling
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.scheduling.snapshot.log import SnapshotLog
from kubetide.scheduling.snapshot.node_pods import NodePods, PodKey
from kubetide.scheduling.snapshot.verdicts import Lineage
from kubetide.scheduling.snapshot.volumes import Volumes

_MOST_COUNTS = 2048
"""Columns of counts kept, if not more are in use; each rollout of a spread workload may ask for a new one."""


class SnapshotStore(SnapshotLog):
    """The changing half of ``Snapshot``.

    Attributes:
        version: Another number after every change; after ``revert`` the number of before the fork.
    """

    def __init__(self, facts: ClusterFacts | None = None) -> None:
        super().__init__()
        self._volume_version = 0
        self._device_version = 0
        self._layout = 0
        self._most_counts = _MOST_COUNTS
        self._columns_version = 0
        self._placed: dict[PodKey, NodePods] = {}
        self._pods: dict[str, NodePods] = {}
        self._rows = Rows(facts=facts or ClusterFacts(), pods=self._pods)
        self._dead: dict[int, None] = {}
        self._open_ledger(self._rows.facts.devices)

    # ── Changing ──

    def set_facts(self, facts: ClusterFacts) -> None:
        """Takes over namespaces and feature gates. Raises RuntimeError on a fork."""
        self._check_no_fork("set_facts")
        if facts == self._rows.facts:
            return
        devices_changed = facts.devices != self._rows.facts.devices
        self._rows.facts = facts
        self._rows.drop_counts()
        if devices_changed:
            self._open_ledger(facts.devices)
        self._touch(static=True)
        self._layout = self._stamp()

    def set_volumes(self, volumes: Volumes | None) -> None:
        """Takes over volume objects: only classes with claims are judged anew. Raises RuntimeError on a fork."""
        self._check_no_fork("set_volumes")
        self._rows.facts = replace(self._rows.facts, volumes=volumes)
        self.version = self._volume_version = self._stamp()

    def set_devices(self, devices: Devices | None) -> None:
        """Takes over slices, claims and classes, as ``set_volumes`` does: for classes that ask for devices."""
        self._check_no_fork("set_devices")
        if devices is self._rows.facts.devices:
            return
        self._rows.facts = replace(self._rows.facts, devices=devices)
        self._open_ledger(devices)
        self.version = self._device_version = self._stamp()

    def set_device_templates(self, templates: Mapping[str, tuple[ResourceSlice, ...]]) -> None:
        """Takes over which slices copies of templates bring, by the template's name. Raises RuntimeError on a fork."""
        self._check_no_fork("set_device_templates")
        devices, ledger = self._rows.facts.devices, self._rows.devices
        if devices is None or ledger is None or devices.templates == templates:
            return
        self._rows.facts = replace(self._rows.facts, devices=replace(devices, templates=templates))
        ledger.take_templates(templates)

    def set_node(self, node: Node) -> None:
        """Adds a node, or takes over what changed of it; its pods stay."""
        name = node.metadata.name
        rows = self._rows
        row = rows.row_of.get(name)
        if row is None:
            rows = self._compacted()
            waiting = self._pods[name].uses if name in self._pods else ()
            for use in waiting:
                self._add_guards(use.pod_class)
            self._add_columns(rows.missing(node))
            row = rows.append(node)
            self._record(self._pop)
            self._nodes_changed()
            for use in waiting:
                self._charge(row, use, 1)
            self._touch(static=True)
            return
        before = rows.nodes[row]
        if before is node:
            return
        if same_for_scheduling(before, node):
            rows.nodes[row] = node
            self._record(rows.nodes.__setitem__, row, before)
            self._touch()
            return
        self._add_columns(rows.missing(node))
        rows.write(row, node)
        self._record(self._rewrite, row, before)
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

    def add_pod(
        self, pod: Pod, node_name: str, pod_class: PodClass | None = None, key: PodKey | None = None
    ) -> bool:
        """Puts a pod on a node; a pod of the same key is replaced, wherever it is.

        Gives whether anything is another to other pods now. Its class, as ``classify_unbound`` gives it, and its key need not be made again where they are known.
        """
        if key is None:
            key = (pod.metadata.namespace, pod.metadata.name)
        use = self._use_of(pod, pod_class)
        pod_class = use.pod_class
        there = self._placed.get(key)
        if there is not None:
            at = there.place_of(key)
            if there.name == node_name and _takes_alike(there.uses[at], use):
                return self._put_instead(there, at, pod, use)
            self._remove(there, at)
        if len(self._rows.counts) > self._most_counts and not self._marks:
            self._rows.forget_counts()
            # Three times as many again as must stay, so that a cluster full of guards does not forget at every pod.
            self._most_counts = max(_MOST_COUNTS, 4 * len(self._rows.counts))
            self._layout = self._stamp()
        self._add_guards(pod_class)
        self._record(self._take_back, self._append(node_name, key, pod, use))
        row = self._rows.row_of.get(node_name)
        if row is not None:
            self._charge(row, use, 1)
        if pod_class.devices is not None:
            self._give_devices(node_name, key, pod, use)
        self._touch()
        return True

    def add_pods(self, pods: Sequence[tuple[PodKey, Pod, str]]) -> None:
        """Puts pods on nodes, given by name, as ``add_pod`` does one by one; adds up what they take.

        For many pods that are new. Raises RuntimeError on a fork.
        """
        if self._marks:
            raise RuntimeError("add_pods on a fork: many pods cannot be taken back, use Snapshot.add_pod()")
        uses = [self._use_of(pod) for _, pod, _ in pods]
        for pod_class in {id(use.pod_class): use.pod_class for use in uses}.values():
            self._add_guards(pod_class)
        row_of, placed, by_node = self._rows.row_of, self._placed, self._pods
        came: dict[int, tuple[Use, list[int]]] = {}
        for (key, pod, node_name), use in zip(pods, uses, strict=True):
            if key in placed:
                self._charge_all(came)
                self.add_pod(pod, node_name, use.pod_class, key)
                continue
            there = by_node.get(node_name)
            if there is None:
                there = by_node[node_name] = NodePods(node_name)
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
        self._touch()

    def remove_pod(self, key: PodKey) -> None:
        """Takes a pod off its node, if it is on one."""
        there = self._placed.get(key)
        if there is not None:
            self._remove(there, there.place_of(key))

    def _put_instead(self, there: NodePods, at: int, pod: Pod, use: Use) -> bool:
        """Puts a pod in the place of one that takes the same; gives whether anything is another to other pods now."""
        before, pod_before = there.uses[at], there.pods[at]
        changes = before is not use and before != use
        if changes:
            self._add_guards(use.pod_class)
            self._recount(there.name, before, use)
            self._record(self._recount, there.name, use, before)
        if changes or pod_before is not pod:
            there.put_instead(at, pod, use)
            self._record(there.put_instead, at, pod_before, before)
            self._touch()
        return changes

    def _recount(self, node_name: str, before: Use, now: Use) -> None:
        rows = self._rows
        row = rows.row_of.get(node_name)
        if row is not None and rows.counts:
            rows.count(row, before, -1)
            rows.count(row, now, 1)

    def _remove(self, there: NodePods, at: int) -> None:
        key, pod, use = there.pop(at)
        del self._placed[key]
        if not there.keys and not self._marks:
            del self._pods[there.name]
        # Changes are taken back in the opposite order, so the place will be the same.
        self._record(self._put_back, there, at, key, pod, use)
        row = self._rows.row_of.get(there.name)
        if row is not None:
            self._charge(row, use, -1)
        devices = use.pod_class.devices
        if devices is not None and self._rows.devices is not None:
            for undo in take_off(self._rows.devices, devices, key):
                self._record(undo)
        self._touch()

    def _append(self, node_name: str, key: PodKey, pod: Pod, use: Use) -> NodePods:
        there = self._pods.get(node_name)
        if there is None:
            there = self._pods[node_name] = NodePods(node_name)
        there.append(key, pod, use)
        self._placed[key] = there
        return there

    def _charge_all(self, came: dict[int, tuple[Use, list[int]]]) -> None:
        """Takes what so many pods take from their rows, and forgets them."""
        for use, given in came.values():
            self._add_columns([key for key, _ in use.charges if key not in self._rows.columns])
            rows, numbers = np.unique(np.array(given, np.int64), return_counts=True)
            self._rows.charge_many(rows, use, numbers)
        came.clear()

    # ── Inside ──

    def _compacted(self) -> Rows:
        """The rows without removed nodes; every reader and every new row starts here."""
        if self._dead:
            rows, dead = self._rows, self._dead
            self._rows, self._dead = rows.without(dead), {}
            self._layout = self._stamp()
            self._record(self._uncompact, rows, dead)
        return self._rows

    def _add_guards(self, pod_class: PodClass) -> None:
        if pod_class.anti_affinity and self._rows.add_guards(pod_class):
            self._layout = self._stamp()

    def _use_of(self, pod: Pod, pod_class: PodClass | None = None) -> Use:
        """Gives what columns hold of a pod on a node; its class need not be made again where it is known."""
        return use_of(pod, pod_class)

    def _open_ledger(self, devices: Devices | None) -> None:
        self._rows.devices = None if devices is None else Ledger(devices)
        for name, there in self._pods.items():
            for key, pod, use in zip(there.keys, there.pods, there.uses, strict=True):
                if use.pod_class.devices is not None:
                    self._give_devices(name, key, pod, use)

    def _give_devices(self, node_name: str, key: PodKey, pod: Pod, use: Use) -> None:
        devices, ledger = use.pod_class.devices, self._rows.devices
        if ledger is None or devices is None:
            return
        row = self._rows.row_of.get(node_name)
        # Whoever is moved in a simulation has left its devices where it was.
        bound = pod.spec.node_name == node_name
        node = None if row is None else self._rows.nodes[row]
        for undo in put_on(ledger, devices, key, node, bound=bound):
            self._record(undo)

    def _charge(self, row: int, use: Use, sign: int) -> None:
        rows = self._rows
        columns = rows.columns
        for key, _ in use.charges:
            if key not in columns:
                self._add_columns((key,))
        rows.charge(row, use.charges, sign)
        if rows.counts:
            rows.count(row, use, sign)
        self._record(self._uncharge, row, use, -sign)

    def _add_columns(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self._rows.add_column(key)
            self._columns_version = self._stamp()
            self._record(self._drop_column, key)

    def _touch(self, *, static: bool = False) -> None:
        self._stamps += 1
        self.version = self._stamps
        if static:
            self._lineage = Lineage(self.version, ())
            self._nodes_changed()

    def _nodes_changed(self) -> None:
        """Domains are other ones now: what judges keep of them is made anew."""
        if self._rows.counts:
            self._rows.drop_tables()
            self._layout = self._stamp()

    # ── Undoing: each takes back one change and records nothing ──

    def _pop(self) -> None:
        self._rows.pop()
        self._nodes_changed()

    def _rewrite(self, row: int, node: Node) -> None:
        self._rows.write(row, node)
        self._nodes_changed()

    def _uncharge(self, row: int, use: Use, sign: int) -> None:
        rows = self._rows
        rows.charge(row, use.charges, sign)
        if rows.counts:
            rows.count(row, use, sign)

    def _drop_column(self, key: Any) -> None:
        self._rows.drop_column(key)
        self._columns_version = self._stamp()

    def _revive(self, name: str, row: int) -> None:
        del self._dead[row]
        self._rows.row_of[name] = row
        self._rows.forget_kinds()  # made while the node was gone, they would lack its pods
        self._nodes_changed()

    def _uncompact(self, rows: Rows, dead: dict[int, None]) -> None:
        self._rows, self._dead = rows, dead
        self._layout = self._stamp()

    def _take_back(self, there: NodePods) -> None:
        key, _, _ = there.pop(-1)
        del self._placed[key]
        if not there.keys:
            del self._pods[there.name]

    def _put_back(self, there: NodePods, at: int, key: PodKey, pod: Pod, use: Use) -> None:
        there.insert(at, key, pod, use)
        self._placed[key] = there
        self._pods[there.name] = there


def _takes_alike(before: Use, now: Use) -> bool:
    """Whether a pod takes from its node what it took before."""
    if before is now:
        return True
    if before.charges != now.charges:
        return False
    return (before.pod_class.devices is None and now.pod_class.devices is None) or before == now
