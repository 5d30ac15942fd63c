"""Places pods one after another on existing nodes, as the autoscaler's simulator does.

Source: cluster-autoscaler core (Jul 2026), hinting simulator and similar-pods shortcut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise

import msgspec
import numpy as np
from msgspec.structs import replace

from kubetide.objects.pod import Pod, priority_of
from kubetide.scheduling.name_order import NameOrder
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.similar import MAX_PER_CONTROLLER, controller_uid, similarity_key
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.units.vectors import BoolVector

FIRST_START = 1
"""Where upstream's very first scan begins: one past the index that it starts with."""


class Placements(msgspec.Struct, frozen=True, kw_only=True):
    """Where pods went.

    Attributes:
        placed: Pods with their node names, in the order in which they were placed.
        unplaced: Pods that fit nowhere, in the order in which that was found.
        unprocessed: Pods not reached: after a failure, where the caller asked to stop at one, or as the search was ended.
        hints: The node of each pod placed, by ``hint_key``: to be given to later calls.
        start: Row at which the next scan is to begin.
        overflowing: Controllers with more distinct failing pods than are remembered.
    """

    placed: tuple[tuple[Pod, str], ...]
    unplaced: tuple[Pod, ...]
    unprocessed: tuple[Pod, ...]
    hints: dict[str, str]
    start: int
    overflowing: int


def hint_key(pod: Pod) -> str:
    """Return the key of a pod's hint: its UID, or namespace and name without one."""
    return pod.metadata.uid or f"{pod.metadata.namespace}/{pod.metadata.name}"


def place(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    *,
    hints: Mapping[str, str] | None = None,
    exclude: Collection[str] = (),
    start: int = FIRST_START,
    stop_at_failure: bool = False,
    by_name: bool = False,
) -> Placements:
    """Place pods and leave them in the snapshot (fork first to be able to revert).

    Higher priority goes first; within a priority, pods whose hinted node still takes them, then the
    others in the given order, each on the first node that takes it, going round from ``start``. A
    node that a pod has now (``spec.nodeName``) does not bind it: take it out of the snapshot first.

    Args:
        snapshot: Is added to.
        pods: What is to be placed.
        hints: Node names by ``hint_key``, as earlier calls gave them.
        exclude: Names of nodes that must not be used. Cordoned nodes are used by hint only.
        start: Row to begin with: ``Placements.start`` of the call before.
        stop_at_failure: Whether a pod that fits nowhere ends the work on its priority.
        by_name: Whether to go round in name order; ``start`` is a place in this order then.
    """
    search = Search(
        snapshot,
        pods,
        hints=hints,
        exclude=exclude,
        start=start,
        stop_at_failure=stop_at_failure,
        by_name=by_name,
    )
    search.go_on()
    return search.result()


class Search:
    """``place`` in parts, for callers that place some pods at a time; nothing else may change the snapshot meanwhile."""

    def __init__(
        self,
        snapshot: Snapshot,
        pods: Sequence[Pod],
        *,
        hints: Mapping[str, str] | None = None,
        exclude: Collection[str] = (),
        start: int = FIRST_START,
        stop_at_failure: bool = False,
        by_name: bool = False,
    ) -> None:
        """Prepare the search; no pod is placed yet. The arguments are those of ``place``."""
        self.pods = pods
        self._run = _Run(snapshot, exclude, start, by_name=by_name)
        self._tries = self._each(hints or {}, stop_at_failure=stop_at_failure)
        self._over = False

    def go_on(self, most: int | None = None) -> bool:
        """Make the next ``most`` tries, or all if None; return whether all pods have been tried."""
        made = 0
        for _ in islice(self._tries, most):
            made += 1
        self._over = self._over or most is None or made < most
        return self._over

    def result(self) -> Placements:
        """Return the placements so far; pods not reached are unprocessed."""
        found = self._run.result()
        if self._over:
            return found
        reached = {id(pod) for pod, _ in found.placed} | {id(pod) for pod in found.unplaced}
        return replace(found, unprocessed=tuple(pod for pod in self.pods if id(pod) not in reached))

    def _each(self, hints: Mapping[str, str], *, stop_at_failure: bool) -> Iterator[None]:
        """Try one pod after another; yields after each."""
        run = self._run
        by_priority: dict[int, list[Pod]] = {}
        for pod in self.pods:
            by_priority.setdefault(priority_of(pod), []).append(pod)
        for priority in sorted(by_priority, reverse=True):
            rest: list[Pod] = []
            for pod in by_priority[priority]:
                if hints and run.place_by_hint(pod, hints):
                    yield
                else:
                    rest.append(pod)
            for position, pod in enumerate(rest):
                if not run.place_anywhere(pod) and stop_at_failure:
                    run.unprocessed.extend(rest[position + 1 :])
                    break
                yield


class _Run:
    """One call of ``place``: nothing is ever freed in it, so most classes that failed once fail again."""

    def __init__(self, snapshot: Snapshot, exclude: Collection[str], start: int, *, by_name: bool) -> None:
        self._snapshot = snapshot
        self._excluded = dict.fromkeys(exclude)
        self._blocked: BoolVector = np.array(snapshot.unschedulable)
        for name in self._excluded:
            if name in snapshot:
                self._blocked[snapshot.row(name)] = True
        self._start = start
        self._names = snapshot.node_names
        self._order: NameOrder | None = None
        if by_name and any(first > second for first, second in pairwise(self._names)):
            self._order = NameOrder(snapshot)
            self._names = self._order.names
            self._blocked = self._blocked[self._order.rows]
        self._failed: dict[PodClass, None] = {}
        self._failed_of: dict[str, dict[bytes, None]] = {}
        self._overflowing: dict[str, None] = {}
        self._placed: list[tuple[Pod, str]] = []
        self._unplaced: list[Pod] = []
        self._hints: dict[str, str] = {}
        self.unprocessed: list[Pod] = []

    def place_by_hint(self, pod: Pod, hints: Mapping[str, str]) -> bool:
        node_name = hints.get(hint_key(pod))
        if node_name is None or node_name not in self._snapshot or node_name in self._excluded:
            return False
        pod_class = classify_unbound(pod)
        if not self._snapshot.fits(pod_class, node_name):
            return False
        self._put(pod, node_name, pod_class)
        return True

    def place_anywhere(self, pod: Pod) -> bool:
        failed = self._failed_of and self._failed_of.get(controller_uid(pod))
        if failed and similarity_key(pod) in failed:
            self._unplaced.append(pod)
            return False
        pod_class = classify_unbound(pod)
        if pod_class not in self._failed:
            row = self._scan(pod_class)
            if row >= 0:
                self._start = row + 1
                self._put(pod, self._names[row], pod_class)
                return True
            if self._snapshot.only_tightens(pod_class):
                self._failed[pod_class] = None
        self._unplaced.append(pod)
        uid = controller_uid(pod)
        if uid:
            failed = self._failed_of.setdefault(uid, {})
            if len(failed) < MAX_PER_CONTROLLER:
                failed[similarity_key(pod)] = None
            else:
                self._overflowing[uid] = None
        return False

    def _scan(self, pod_class: PodClass) -> int:
        if self._order is None:
            return self._snapshot.first_fit(pod_class, self._start, self._blocked)
        return self._order.first_fit(pod_class, self._start % len(self._names), ~self._blocked)

    def _put(self, pod: Pod, node_name: str, pod_class: PodClass) -> None:
        self._snapshot.add_pod(pod, node_name, pod_class)
        self._placed.append((pod, node_name))
        self._hints[hint_key(pod)] = node_name

    def result(self) -> Placements:
        return Placements(
            placed=tuple(self._placed),
            unplaced=tuple(self._unplaced),
            unprocessed=tuple(self.unprocessed),
            hints=self._hints,
            start=self._start,
            overflowing=len(self._overflowing),
        )
