"""What was seen of a run: by its records, by Prometheus, or by both."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kubetide.experiments.capture.cluster import LOOP as NODES
from kubetide.experiments.capture.cluster import Cluster, read_cluster
from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.services import LOOP as HORIZONTAL
from kubetide.experiments.capture.services import Services, read_services
from kubetide.experiments.capture.tables import LOOP as SCHEDULES
from kubetide.experiments.capture.tables import Tables, read_tables
from kubetide.experiments.capture.vertical import RECOMMENDER, Vertical, read_vertical
from kubetide.runtime.recording.records import recorded_loops


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


def seen_in(folder: Path) -> Seen:
    """Return what a folder's records show. Raises: CaptureError, RecordError."""
    loops = recorded_loops(folder)
    if NODES not in loops:
        raise CaptureError(
            f"{folder} has no records of the node loop, which tell the workloads and the node groups: "
            "record with --controllers=horizontal,nodes; advice mode is enough"
        )
    return Seen(
        read_cluster(folder),
        read_services(folder) if HORIZONTAL in loops else None,
        vertical=read_vertical(folder, loops) if RECOMMENDER in loops else None,
        tables=read_tables(folder) if SCHEDULES in loops else None,
    )
