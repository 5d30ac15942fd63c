"""Pods, VPAs, and the groups that connect them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubetide.objects.meta import Condition, Key
from kubetide.objects.vpa import VpaStatus
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant
from kubetide.vertical.recommender.facts.views import Requested, VpaView

GroupKey = tuple[str, int]
"""Namespace, number of the label set."""


class Group(msgspec.Struct, eq=False):
    """Pods of a namespace with the same labels.

    Attributes:
        vpas: Those that select them, ordered.
        pods: How many there are.
        aggregates: Rows by container.
    """

    vpas: list[Key] = msgspec.field(default_factory=list)
    pods: int = 0
    aggregates: dict[str, int] = msgspec.field(default_factory=dict)


class PodEntry(msgspec.Struct, eq=False):
    """A tracked pod.

    ``containers`` are rows by name, those of earlier versions of the pod included; ``resources`` are what they request,
    where that plays a part.
    """

    labels: int
    phase: str
    containers: dict[str, int]
    init: tuple[str, ...]
    resources: dict[str, Requested] = msgspec.field(default_factory=dict)


class Stored(msgspec.Struct, frozen=True):
    """A VPA's stored status, encoded, because thousands of them are held.

    Attributes:
        ours: Whether this recommender wrote it, so that what says the same is spelled the same.
    """

    encoded: bytes = b"{}"
    conditions: tuple[Condition, ...] = ()
    ours: bool = False

    @staticmethod
    def of(status: VpaStatus, *, ours: bool = False) -> Stored:
        """Return the encoded form of a status."""
        return Stored(encode_status(status), status.conditions or (), ours)

    def read(self) -> VpaStatus:
        """Return the whole status."""
        return _decoder.decode(self.encoded)


encode_status = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(VpaStatus)
_NOTHING = Stored()


class Vpa(msgspec.Struct, eq=False):
    """A VPA that this recommender serves.

    Attributes:
        selector: Of its pods.
        groups: Those that it selects.
        loaded: Rows of checkpoints that were loaded at the start, by container; their history counts for ever.
        stored: Its status.
        checkpointed: When its checkpoints were last written.
        cells: By container, ordered: the rows whose histograms add up; None until they are asked for.
    """

    view: VpaView
    selector: Selector
    groups: dict[GroupKey, None] = msgspec.field(default_factory=dict)
    loaded: dict[str, int] = msgspec.field(default_factory=dict)
    stored: Stored = _NOTHING
    checkpointed: Instant | None = None
    cells: tuple[tuple[str, tuple[int, ...]], ...] | None = None

    @property
    def key(self) -> Key:
        return self.view.namespace, self.view.name


class Members(msgspec.Struct, frozen=True):
    """The relations of VPAs, pods and groups. The dictionaries are filled and emptied in place."""

    groups: dict[GroupKey, Group] = msgspec.field(default_factory=dict)
    pods: dict[Key, PodEntry] = msgspec.field(default_factory=dict)
    vpas: dict[Key, Vpa] = msgspec.field(default_factory=dict)

    def vpas_of(self, namespace: str, pod: PodEntry) -> Sequence[Key]:
        """Return the VPAs that select a tracked pod, ordered."""
        return self.groups[namespace, pod.labels].vpas

    def loaded(self) -> set[int]:
        """Return the rows of aggregates that checkpoints were loaded into."""
        return {row for vpa in self.vpas.values() for row in vpa.loaded.values()}

    def contributive(self) -> set[int]:
        """Return the rows of aggregates of pods that run, or whose controller still exists."""
        rows: set[int] = set()
        for (namespace, _), pod in self.pods.items():
            group = self.groups[namespace, pod.labels]
            if pod.phase not in {"Succeeded", "Failed"} or group.vpas:
                rows.update(group.aggregates[name] for name in pod.containers if name in group.aggregates)
        return rows


class LabelSets:
    """Numbered label sets, so that two small keys identify a group."""

    def __init__(self) -> None:
        self._numbers: dict[frozenset[tuple[str, str]], int] = {}
        self.sets: dict[int, dict[str, str]] = {}
        self._next = 0

    def number(self, labels: dict[str, str]) -> int:
        """Return the number of a label set, a new one if it has none."""
        key = frozenset(labels.items())
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._next
            self.sets[found] = labels
            self._next += 1
        return found

    def keep_only(self, numbers: set[int]) -> None:
        """Forget all other label sets; their numbers are not reused, because they define an order."""
        for number in self.sets.keys() - numbers:
            del self._numbers[frozenset(self.sets.pop(number).items())]
