"""Whether the pods of a node fit elsewhere: re-packing on forks of the snapshot.

Pods that moved stay where they were put for the candidates that follow. Nodes are tried in name
order, from where the last search ended, so that the answer does not depend on the order in which
nodes joined; pods with a node from an earlier simulation try that one first. A node whose pods have
fit elsewhere leaves the list of nodes, and with it the places of those after it move up by one.

Source: Cluster Autoscaler, removal simulator and hinting simulator.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kubetide.nodes.facts.new_pods import NewPod, as_new, new_requests_text
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.facts.pods import pod_text
from kubetide.nodes.facts.tpu import any_requested, without_tpu_requests
from kubetide.nodes.scale_down.names import NO_SCHEDULE
from kubetide.objects.meta import ObjectMeta, key_of
from kubetide.objects.node import Node, Taint
from kubetide.objects.pod import Pod, priority_of
from kubetide.scheduling import BoolVector, PodClass, Snapshot, classify_unbound, hint_key
from kubetide.scheduling.filters.node_unschedulable import REASON as UNSCHEDULABLE_NODE
from kubetide.scheduling.name_order import NameOrder

_REASONS_SHOWN = 3
_NAMES_SHOWN = 3


class DoesNotFit(Exception):  # an answer of the simulation, not a fault
    """A pod fits on no other node. ``detail`` is one sentence."""

    def __init__(self, pod: Pod, detail: str) -> None:
        super().__init__(detail)
        self.pod = pod
        self.detail = detail


class Simulation:
    """Tries removals one after another on the snapshot; the caller forks before and reverts after.

    Attributes:
        hints: The node of each pod placed in this simulation, by ``hint_key``; to be given to the next one.
        rotation: Where in name order, among the nodes that are left, the next search begins; it moves on also
            when a removal fails.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        destinations: Iterable[str],
        hints: Mapping[str, str],
        rotation: int,
        new_pods: Mapping[str, NewPod] | None = None,
    ) -> None:
        """``new_pods``: what moved pods ask for when they come back, by uid of their controller."""
        self._snapshot = snapshot
        self._order = NameOrder(snapshot)
        self._names, self._index = self._order.names, self._order.index
        self._open: BoolVector = np.zeros(len(self._names), np.bool_)
        for name in destinations:
            if name in self._index:
                self._open[self._index[name]] = True
        self._cordoned: BoolVector = snapshot.unschedulable[self._order.rows]
        self._old_hints = hints
        self._new_pods = new_pods or {}
        self._tpus = any_requested(snapshot.requested)
        self._closed: dict[str, None] = {}
        self._gone: list[int] = []
        """Places in name order of the nodes that are removed, in order."""
        self._still_there: list[str] = []
        """Removed nodes that the snapshot holds all the same, as nothing placed so far has minded them."""
        self.hints: dict[str, str] = {}
        self.rotation = rotation

    def close(self, name: str) -> None:
        """Exclude the node from the destinations: it is being deleted, but still counts as a node."""
        if name in self._index:
            self._closed[name] = None
            self._open[self._index[name]] = False

    def open_rows(self) -> BoolVector:
        """Return (rows,): whether a row of the snapshot is a destination."""
        found: BoolVector = np.zeros(len(self._snapshot.node_names), np.bool_)
        found[self._order.rows] = self._open & ~self._cordoned
        return found

    def remove(self, name: str) -> None:
        """Remove the node from the snapshot: later removals do not see it."""
        self.close(name)
        if name in self._index:
            insort(self._gone, self._index[name])
            self._still_there.append(name)

    def move(self, node_name: str, pods: Sequence[Pod]) -> dict[str, str]:
        """Move pods off a node and return where they went, by ``hint_key``.

        Where a pod does not fit, pods of lower priority are still tried, as upstream does: hints and
        rotation show it. Raises: DoesNotFit, with the snapshot as it was before.
        """
        if self._tpus:
            pods = [without_tpu_requests(pod) for pod in pods]
        before = pods
        if self._new_pods:
            pods = [as_new(pod, self._new_pods) for pod in pods]
        index = self._index[node_name]
        was_open = bool(self._open[index])
        self._open[index] = False
        has_rules = any(self._snapshot.has_inter_pod_rules(classify_unbound(pod)) for pod in pods)
        if has_rules:
            self._take_away()
        self._snapshot.fork()
        moved: dict[str, str] = {}
        failed: DoesNotFit | None = None
        for pod in pods:
            self._snapshot.remove_pod(key_of(pod))
        if has_rules:
            self._leave_ghost(node_name)
        for alike in _by_priority(pods):
            rest = [pod for pod in alike if not self._place_by_hint(pod, moved)]
            for pod in rest:
                try:
                    self._place(pod, moved)
                except DoesNotFit as error:
                    failed = failed or error
                    break
        if failed is None:
            self._snapshot.commit()
        else:
            self._snapshot.revert()
        self._open[index] = was_open
        if failed is not None:
            failed.detail += next(
                (
                    new_requests_text(own, pod)
                    for own, pod in zip(before, pods, strict=True)
                    if pod is failed.pod
                ),
                "",
            )
            raise failed
        return moved

    def _take_away(self) -> None:
        """Leave nothing of the removed nodes that a rule among pods counts.

        Each stays a row, without labels, pods and amounts. To take it out, all counts would be copied, and held until the
        fork ends: with hundreds of removable nodes and hundreds of spread workloads that is gigabytes.
        """
        for name in self._still_there:
            for pod in self._snapshot.pods_on(name):
                self._snapshot.remove_pod(key_of(pod))
            self._snapshot.set_node(Node(metadata=ObjectMeta(name=name)))
        self._still_there = []

    def _leave_ghost(self, node_name: str) -> None:
        """Leave of the node what it is while it is drained: tainted, without pods, and still a place for spreading."""
        node = self._snapshot.node(node_name)
        for pod in self._snapshot.pods_on(node_name):
            self._snapshot.remove_pod(key_of(pod))
        taint = Taint(key=TO_BE_DELETED, effect=NO_SCHEDULE)
        spec = replace(node.spec, taints=(*(node.spec.taints or ()), taint))
        self._snapshot.set_node(replace(node, spec=spec))

    def _place_by_hint(self, pod: Pod, moved: dict[str, str]) -> bool:
        """Place the pod where it fitted the last time, if that still holds."""
        key = hint_key(pod)
        name = self.hints.get(key) or self._old_hints.get(key)
        if name is None or name not in self._index or not self._open[self._index[name]]:
            return False
        pod_class = classify_unbound(pod)
        if not self._snapshot.fits(pod_class, name):
            return False
        self._put(pod, pod_class, name, moved)
        return True

    def _place(self, pod: Pod, moved: dict[str, str]) -> None:
        pod_class = classify_unbound(pod)
        index = self._search(pod_class)
        if index < 0:
            raise DoesNotFit(pod, self._why(pod, pod_class))
        self.rotation = index - bisect_left(self._gone, index) + 1
        self._put(pod, pod_class, self._names[index], moved)

    def _put(self, pod: Pod, pod_class: PodClass, name: str, moved: dict[str, str]) -> None:
        self._snapshot.add_pod(pod, name, pod_class)
        self.hints[hint_key(pod)] = moved[hint_key(pod)] = name

    def _start(self) -> int:
        """Return the place in name order where the search begins."""
        start = self.rotation % (len(self._names) - len(self._gone))
        for gone in self._gone:
            if gone > start:
                break
            start += 1
        return start

    def _search(self, pod_class: PodClass) -> int:
        """Return the place in name order of the first node that takes the class, or -1."""
        if len(self._names) == len(self._gone):
            return -1
        return self._order.first_fit(pod_class, self._start(), self._open & ~self._cordoned)

    def _why(self, pod: Pod, pod_class: PodClass) -> str:
        """One sentence with the scheduler's reasons, counted over the nodes that were asked."""
        rows = self._order.rows[self._open]
        asked, counts = len(rows), self._snapshot.refusals(pod_class, rows)
        # What passes the filters is cordoned, and the pod tolerates that.
        if cordoned := int(self._snapshot.feasible(pod_class)[rows].sum()):
            counts[UNSCHEDULABLE_NODE] = counts.get(UNSCHEDULABLE_NODE, 0) + cordoned
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_REASONS_SHOWN]
        reasons = ", ".join(f"{count} {reason}" for reason, count in most)
        name = pod_text(pod)
        where = f"{name if name.startswith('a pod of') else f'pod {name}'} fits on none of the {asked} other nodes"
        return f"{where}: {reasons}{self._not_counted()}" if reasons else f"{where}{self._not_counted()}"

    def _not_counted(self) -> str:
        """Name the nodes that were not asked because they are to go themselves."""
        going = sorted(self._closed)
        if not going:
            return ""
        if len(going) == 1:
            return f"; {going[0]} is not counted: it is to go as well"
        more = len(going) - _NAMES_SHOWN
        names = [*going[:_NAMES_SHOWN], f"{more} more"] if more > 0 else going
        return f"; {', '.join(names[:-1])} and {names[-1]} are not counted: they are to go as well"


def _by_priority(pods: Sequence[Pod]) -> list[list[Pod]]:
    """Return the pods in groups of one priority, highest first, each in the order given."""
    found: dict[int, list[Pod]] = {}
    for pod in pods:
        found.setdefault(priority_of(pod), []).append(pod)
    return [found[priority] for priority in sorted(found, reverse=True)]
