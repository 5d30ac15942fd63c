"""What was seen of a run: by its records, by Prometheus, or by both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kubetide.experiments.capture.cluster import LOOP as NODES
from kubetide.experiments.capture.cluster import Cluster, read_cluster
from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.reading import records_in
from kubetide.experiments.capture.services import LOOP as HORIZONTAL
from kubetide.experiments.capture.services import Services, read_services
from kubetide.experiments.capture.tables import LOOP as SCHEDULES
from kubetide.experiments.capture.tables import Tables, read_tables
from kubetide.experiments.capture.vertical import RECOMMENDER, UPDATER, Vertical, read_vertical
from kubetide.runtime.recording.records import recorded_loops, segments

_LOOPS = {NODES, HORIZONTAL, SCHEDULES, RECOMMENDER, UPDATER}
"""Whose records a capture reads."""


class Seen(NamedTuple):
    """A run: its cluster, its services where the HPA loop was seen, and sentences on what was not.

    Attributes:
        vertical, tables: Where the loops of VPAs and of time tables were recorded.
    """

    cluster: Cluster
    services: Services | None
    notes: tuple[str, ...] = ()
    vertical: Vertical | None = None
    tables: Tables | None = None


def bytes_of(folder: Path) -> int:
    """Return the size of the records that ``seen_in`` reads. Raises RecordError if there are none."""
    loops = _LOOPS.intersection(recorded_loops(folder))
    return sum(path.stat().st_size for loop in loops for path in segments(folder, loop))


def seen_in(folder: Path, *, progress: Callable[[int], None] = lambda _: None) -> Seen:
    """Return what a folder's records show.

    Args:
        folder: Where a run keeps its records.
        progress: Hears of the bytes of each record that was read, of ``bytes_of`` altogether.
    Raises: CaptureError, RecordError.
    """
    loops = recorded_loops(folder)
    if NODES not in loops:
        raise CaptureError(
            f"{folder} has no records of the node loop, which tell the workloads and the node groups: "
            "record with --controllers=horizontal,nodes; advice mode is enough"
        )
    records = records_in(folder, progress)
    return Seen(
        read_cluster(records),
        read_services(records) if HORIZONTAL in loops else None,
        vertical=read_vertical(records, loops) if RECOMMENDER in loops else None,
        tables=read_tables(records) if SCHEDULES in loops else None,
    )
