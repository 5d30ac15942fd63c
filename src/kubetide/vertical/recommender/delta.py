"""Changes gathered since the last pass; a full delta also holds the memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubetide.objects.meta import Key
from kubetide.plan.board import NodeSize
from kubetide.units.time import Instant
from kubetide.vertical.recommender.facts.views import (
    CheckpointView,
    History,
    Oom,
    PodView,
    Samples,
    StatusView,
    VpaView,
)
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.targets.floors import Floor, Place
from kubetide.vertical.recommender.targets.rollback import Past


class HistogramRecord(msgspec.Struct, frozen=True, array_like=True):
    """A histogram with exact weights; ``buckets`` and ``weights`` hold those above 0."""

    reference: int
    total: float
    low: int
    high: int
    stray: bool
    buckets: tuple[int, ...]
    weights: tuple[float, ...]


class AggregateRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of ``Aggregates``; ``vpa`` names the VPA of a loaded checkpoint, else ``labels`` are the pods'."""

    namespace: str
    container: str
    cpu: HistogramRecord
    memory: HistogramRecord
    created: int
    first: int
    last: int
    count: int
    bump_ratio: float
    bump_least: int
    interval: int
    interval_count: int
    labels: dict[str, str] = {}
    vpa: str = ""


class ContainerRecord(msgspec.Struct, frozen=True, array_like=True):
    """A row of ``Containers``."""

    namespace: str
    pod: str
    container: str
    has_aggregate: bool
    last_cpu: int
    last_memory: int
    window_end: int
    peak: int
    oom_peak: int


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The recommender's memory besides objects.

    Attributes:
        aggregates: In the order in which merging takes them.
        checkpointed: When each VPA's checkpoints were written last.
        aggregates_collected, checkpoints_collected: When garbage was last collected.
        ghosts: Pods that only history knows, or whose name a pending pod has.
        untracked: Pods that no VPA selects, with ``memory-saver``.
        problems: What went wrong on the way into the last pass.
    """

    aggregates: tuple[AggregateRecord, ...] = ()
    containers: tuple[ContainerRecord, ...] = ()
    checkpointed: tuple[tuple[str, str, int], ...] = ()
    aggregates_collected: Instant | None = None
    checkpoints_collected: Instant | None = None
    ghosts: tuple[Key, ...] = ()
    untracked: tuple[PodView, ...] = ()
    problems: tuple[str, ...] = ()
    floors: tuple[tuple[Place, Floor], ...] = ()
    pasts: tuple[tuple[Place, Past], ...] = ()


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes.

    Attributes:
        at: When it was gathered.
        settings: Only in a full delta.
        vpas, gone_vpas: New, changed and deleted VPAs of all recommenders.
        statuses: Statuses that are not the ones that the loop wrote last.
        checkpoints: What is stored: new names, or gone ones; the names decide what is garbage.
        load: Checkpoints whose content is taken over; only at the start.
        history: Only at the start, with history from elsewhere.
        pods, gone_pods: New, changed and deleted pods.
        samples: This pass's answer of the metrics API; None where it failed.
        ooms: In the order in which they were seen.
        sizes: Of new nodes, where targets must fit them; always all of them.
        memory: Only in a full delta.
    """

    at: Instant = Instant(0)
    settings: Settings | None = None
    vpas: Sequence[VpaView] = ()
    gone_vpas: Sequence[Key] = ()
    statuses: Sequence[StatusView] = ()
    checkpoints: Sequence[CheckpointView] = ()
    gone_checkpoints: Sequence[Key] = ()
    load: Sequence[CheckpointView] = ()
    history: Sequence[History] = ()
    pods: Sequence[PodView] = ()
    gone_pods: Sequence[Key] = ()
    samples: Samples | None = None
    ooms: Sequence[Oom] = ()
    sizes: Sequence[NodeSize] = ()
    memory: Memory | None = None
