"""The pods in columns: one row per pod, updated in place as pods change.

Rows are handed out from a free list and mean nothing outside the state; whatever a decision or a
text depends on goes by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.horizontal.facts.selectors import Membership
from kubetide.horizontal.facts.views import YEAR_ONE, PodView
from kubetide.horizontal.metrics.types import SampleKey
from kubetide.objects.meta import Key
from kubetide.units.vectors import BoolVector, Int64Vector

Int8Vector = NDArray[np.int8]

# What a pod is before samples are looked at.
IGNORED, PENDING, ORDINARY = 0, 1, 2
# The Ready condition.
READY_NONE, READY_FALSE, READY_OTHER = 0, 1, 2

NO_START = YEAR_ONE - 1
NO_REQUEST = -1

_FIRST_SIZE = 64

_set = msgspec.structs.force_setattr


def pod_state(pod: PodView) -> int:
    """Return IGNORED for a pod that is being deleted or has failed, PENDING, or ORDINARY."""
    if pod.deleting or pod.phase == "Failed":
        return IGNORED
    return PENDING if pod.phase == "Pending" else ORDINARY


def readiness(pod: PodView) -> int:
    """Return the code of the Ready condition. Unknown is not False."""
    if not pod.ready:
        return READY_NONE
    return READY_FALSE if pod.ready == "False" else READY_OTHER


def _share(pod: PodView, old: PodView) -> None:
    """Put what a changed pod has as before in place of its own, so that a hundred thousand changes take no memory."""
    _set(pod, "name", old.name)
    if pod.containers == old.containers:
        _set(pod, "containers", old.containers)
    if pod.ready_since == old.ready_since:
        _set(pod, "ready_since", old.ready_since)
    if pod.started == old.started:
        _set(pod, "started", old.started)


_Request = Callable[[PodView, SampleKey, bool], int | str]


class Shapes:
    """The distinct requests of the pods there are; pods of one template share a shape.

    A shape without pods is forgotten and its place taken again: the vertical loops give pods ever new requests.
    """

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._pods: list[PodView | None] = []
        self._identities: list[bytes] = []
        self._users: list[int] = []
        self._free: list[int] = []
        self._columns: dict[tuple[SampleKey, bool], tuple[Int64Vector, _Request]] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def acquire(self, pod: PodView) -> int:
        """Return the shape of a pod that is there from now on."""
        identity = msgspec.json.encode((pod.containers, pod.pod_level))
        found = self._ids.get(identity)
        if found is None:
            found = self._ids[identity] = self._place_of(pod, identity)
        self._users[found] += 1
        return found

    def release(self, shape: int) -> None:
        """Note that a pod of a shape is gone."""
        self._users[shape] -= 1
        if not self._users[shape]:
            del self._ids[self._identities[shape]]
            self._pods[shape], self._identities[shape] = None, b""
            self._free.append(shape)

    def column(self, key: SampleKey, *, pod_level: bool, request: _Request) -> Int64Vector:
        """Return (shapes,) requests in thousandths; ``NO_REQUEST`` where ``request`` returns a problem."""
        column, _ = self._columns.get((key, pod_level), (np.zeros(0, np.int64), request))
        if len(column) < len(self._pods):
            more = [_requested(pod, key, pod_level, request) for pod in self._pods[len(column) :]]
            column = np.concatenate([column, np.array(more, np.int64)])
            self._columns[key, pod_level] = column, request
        return column

    def _place_of(self, pod: PodView, identity: bytes) -> int:
        if not self._free:
            self._pods.append(pod)
            self._identities.append(identity)
            self._users.append(0)
            return len(self._pods) - 1
        place = self._free.pop()
        self._pods[place], self._identities[place] = pod, identity
        for (key, pod_level), (column, request) in self._columns.items():
            if place < len(column):
                column[place] = _requested(pod, key, pod_level, request)
        return place


def _requested(pod: PodView | None, key: SampleKey, pod_level: bool, request: _Request) -> int:
    found = NO_REQUEST if pod is None else request(pod, key, pod_level)
    return NO_REQUEST if isinstance(found, str) else found


class Rows(Mapping[Key, int]):
    """The row of each pod by namespace and name, without a tuple per pod."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[str, int]] = {}
        self._count = 0

    def __getitem__(self, key: Key) -> int:
        return self._spaces[key[0]][key[1]]

    def __iter__(self) -> Iterator[Key]:
        return ((space, name) for space, rows in self._spaces.items() for name in rows)

    def __len__(self) -> int:
        return self._count

    def of(self, namespaces: Sequence[str], names: Sequence[str]) -> Int64Vector:
        """Return (pods,) rows, -1 where there is none."""
        spaces, none = self._spaces, dict[str, int]()
        found = [spaces.get(space, none).get(name, -1) for space, name in zip(namespaces, names, strict=True)]
        return np.array(found, np.int64)

    def number_in(self, namespaces: Iterable[str]) -> int:
        """Return how many pods are in these namespaces."""
        return sum(len(self._spaces.get(space, ())) for space in namespaces)

    def ordered(self) -> list[int]:
        """Return the rows in order of namespace and name."""
        return [
            rows[name]
            for _, rows in sorted(self._spaces.items(), key=lambda item: item[0])
            for name in sorted(rows)
        ]

    def put(self, key: Key, row: int) -> None:
        """Note the row of a new pod."""
        self._spaces.setdefault(key[0], {})[key[1]] = row
        self._count += 1

    def remove(self, key: Key) -> int | None:
        """Forget a pod; return its row, None where it is not known."""
        rows = self._spaces.get(key[0], {})
        row = rows.pop(key[1], None)
        if row is not None:
            self._count -= 1
            if not rows:
                del self._spaces[key[0]]
        return row


class PodTable:
    """Pods by row. ``members`` holds the pods that each HPA's selector matches."""

    def __init__(self) -> None:
        self.members = Membership()
        self.shapes = Shapes()
        self.rows = Rows()
        self.views: list[PodView | None] = []
        self.version = 0
        """Changes with the set of pods."""
        self.changes = 0
        """Counts the pods that came, changed or went."""
        self._free: list[int] = []
        self.pod_state: Int8Vector = np.zeros(_FIRST_SIZE, np.int8)
        self.readiness: Int8Vector = np.zeros(_FIRST_SIZE, np.int8)
        self.ready_since: Int64Vector = np.zeros(_FIRST_SIZE, np.int64)
        self.started: Int64Vector = np.zeros(_FIRST_SIZE, np.int64)
        self.shape: Int64Vector = np.zeros(_FIRST_SIZE, np.int64)
        self.serving: BoolVector = np.zeros(_FIRST_SIZE, np.bool_)
        """Whether a pod is Running and Ready."""

    @property
    def capacity(self) -> int:
        """Length of the columns."""
        return len(self.pod_state)

    def put(self, pod: PodView) -> None:
        """Add or update a pod."""
        self.changes += 1
        key = pod.namespace, pod.name
        row = self.rows.get(key)
        if row is None:
            row = self._new_row(key)
            labels = self.members.add_pod(row, pod)
            self.shape[row] = self.shapes.acquire(pod)
        else:
            old = self.view(row)
            labels = old.labels
            if labels != pod.labels:
                self.members.remove_pod(row, old)
                labels = self.members.add_pod(row, pod)
            else:
                _share(pod, old)
            if pod.containers != old.containers or pod.pod_level != old.pod_level:
                before = int(self.shape[row])
                self.shape[row] = self.shapes.acquire(pod)
                self.shapes.release(before)
        if labels is not pod.labels and list(labels) == list(pod.labels):
            _set(pod, "labels", labels)
        self.views[row] = pod
        self.pod_state[row] = pod_state(pod)
        self.readiness[row] = readiness(pod)
        self.ready_since[row] = pod.ready_since
        self.started[row] = NO_START if pod.started is None else pod.started
        self.serving[row] = pod.phase == "Running" and pod.ready == "True"

    def remove(self, key: Key) -> None:
        """Remove a pod, if it is known."""
        row = self.rows.remove(key)
        if row is None:
            return
        self.changes += 1
        self.members.remove_pod(row, self.view(row))
        self.shapes.release(int(self.shape[row]))
        self.views[row] = None
        self._free.append(row)
        self.version += 1

    def view(self, row: int) -> PodView:
        pod = self.views[row]
        assert pod is not None
        return pod

    def members_of(self, hpa: Key) -> Int64Vector:
        """Return the rows of the pods that the HPA's selector matches, ordered by pod name."""
        return self.members.rows_of(hpa, lambda row: self.view(row).name)

    def rows_in(self, hpa: Key, namespaces: Sequence[str], names: Sequence[str]) -> Int64Vector:
        """Return (pods,) rows of the pods that the HPA's selector matches, -1 for the others."""
        members = {self.view(row).name: row for row in self.members_of(hpa).tolist()}
        rows = np.full(len(names), -1, np.int64)
        for place, name in enumerate(names):
            if name in members and namespaces[place] == hpa[0]:
                rows[place] = members[name]
        return rows

    def _new_row(self, key: Key) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = len(self.views)
            self.views.append(None)
            if row == self.capacity:
                self._grow()
        self.rows.put(key, row)
        self.version += 1
        return row

    def _grow(self) -> None:
        size = 2 * self.capacity
        self.pod_state = np.resize(self.pod_state, size)
        self.readiness = np.resize(self.readiness, size)
        self.ready_since = np.resize(self.ready_since, size)
        self.started = np.resize(self.started, size)
        self.shape = np.resize(self.shape, size)
        self.serving = np.resize(self.serving, size)
