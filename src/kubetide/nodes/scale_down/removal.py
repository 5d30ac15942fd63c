"""Whether the pods of a node find room elsewhere: re-packing on forks of the snapshot.

Pods that moved stay where they were put for the candidates that follow. Nodes are tried in name
order, from where the last search ended, so that the answer does not depend on the order in which
nodes joined; pods with a node from an earlier simulation try that one first.

Source: Cluster Autoscaler, removal simulator and hinting simulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kubetide.nodes.facts.pods import spoken_name
from kubetide.nodes.scale_down.pods import key_of
from kubetide.objects.pod import Pod
from kubetide.scheduling import BoolVector, PodClass, Snapshot, classify_unbound

_SINGLE_LOOKS = 16
_REASONS_SHOWN = 3
_NAMES_SHOWN = 3


class NoRoom(Exception):  # an answer of the simulation, not a fault
    """A pod fits on no other node. ``detail`` is one sentence."""

    def __init__(self, pod: Pod, detail: str) -> None:
        super().__init__(detail)
        self.pod = pod
        self.detail = detail


class Simulation:
    """Tries removals one after another on the snapshot; the caller forks before and reverts after.

    Attributes:
        hints: The node of each pod placed in this simulation; to be given to the next one.
        rotation: Where in name order the next search begins; it moves on also when a removal fails.
    """

    def __init__(
        self, snapshot: Snapshot, destinations: Iterable[str], hints: Mapping[str, str], rotation: int
    ) -> None:
        self._snapshot = snapshot
        self._names = sorted(snapshot.node_names)
        self._index = {name: index for index, name in enumerate(self._names)}
        self._rows = np.array([snapshot.row(name) for name in self._names], dtype=np.intp)
        self._open: BoolVector = np.zeros(len(self._names), np.bool_)
        for name in destinations:
            if name in self._index:
                self._open[self._index[name]] = True
        self._cordoned: BoolVector = snapshot.unschedulable[self._rows]
        self._old_hints = hints
        self._closed: dict[str, None] = {}
        self.hints: dict[str, str] = {}
        self.rotation = rotation

    def close(self, name: str) -> None:
        """Take the node off the destinations: it is to be removed."""
        if name in self._index:
            self._closed[name] = None
            self._open[self._index[name]] = False

    def move(self, node_name: str, pods: Sequence[Pod]) -> dict[str, str]:
        """Move pods off a node and return where they went, by ``namespace/name``.

        Raises: NoRoom, with the snapshot as it was before.
        """
        index = self._index[node_name]
        was_open = bool(self._open[index])
        self._open[index] = False
        self._snapshot.fork()
        moved: dict[str, str] = {}
        try:
            for pod in pods:
                self._snapshot.remove_pod(key_of(pod))
            for pod in self._in_order(pods):
                moved["/".join(key_of(pod))] = self._place(pod)
        except NoRoom:
            self._snapshot.revert()
            self._open[index] = was_open
            raise
        self._snapshot.commit()
        self._open[index] = was_open
        self.hints.update(moved)
        return moved

    def _in_order(self, pods: Sequence[Pod]) -> list[Pod]:
        """Higher priority first; within one, pods with a hint that may hold before the others."""
        return sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), self._hinted(pod) is None))

    def _hinted(self, pod: Pod) -> str | None:
        key = "/".join(key_of(pod))
        name = self.hints.get(key) or self._old_hints.get(key)
        if name is None or name not in self._index or not self._open[self._index[name]]:
            return None
        return name

    def _place(self, pod: Pod) -> str:
        pod_class = classify_unbound(pod)
        name = self._hinted(pod)
        if name is None or not self._snapshot.fits(pod_class, name):
            index = self._search(pod_class)
            if index < 0:
                raise NoRoom(pod, self._why(pod, pod_class))
            self.rotation = index + 1
            name = self._names[index]
        self._snapshot.add_pod(pod, name, pod_class)
        return name

    def _search(self, pod_class: PodClass) -> int:
        """Return the place in name order of the first node that takes the class, or -1."""
        count = len(self._names)
        if count == 0:
            return -1
        start = self.rotation % count
        open_nodes = self._open & ~self._cordoned
        # A few single looks first: most pods find room at once, and a look is cheaper than a vector.
        for index in range(start, min(start + _SINGLE_LOOKS, count)):
            if open_nodes[index] and self._snapshot.fits(pod_class, self._names[index]):
                return index
        fits = self._snapshot.feasible(pod_class)[self._rows] & open_nodes
        for first, last in ((start, count), (0, start)):
            if first < last:
                index = first + int(fits[first:last].argmax())
                if fits[index]:
                    return index
        return -1

    def _why(self, pod: Pod, pod_class: PodClass) -> str:
        """One sentence with the scheduler's reasons, counted over the nodes that were asked."""
        counts: dict[str, int] = {}
        asked = 0
        for index, name in enumerate(self._names):
            if not self._open[index]:
                continue
            asked += 1
            refusal = self._snapshot.first_refusal(pod_class, name)
            for reason in ("node(s) were unschedulable",) if refusal is None else refusal.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_REASONS_SHOWN]
        reasons = ", ".join(f"{count} {reason}" for reason, count in most)
        name = spoken_name(pod)
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
