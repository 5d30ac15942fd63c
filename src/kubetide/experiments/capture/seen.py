"""What was seen of a run: by its records, by Prometheus, or by both."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kubetide.experiments.capture.cluster import LOOP as NODES
from kubetide.experiments.capture.cluster import Cluster, read_cluster
from kubetide.experiments.capture.scenario import CaptureError
from kubetide.experiments.capture.services import LOOP as HORIZONTAL
from kubetide.experiments.capture.services import Services, read_services
from kubetide.runtime.records import recorded_loops


class Seen(NamedTuple):
    """A run: its cluster, its services where the HPA loop was seen, and sentences on what was not."""

    cluster: Cluster
    services: Services | None
    notes: tuple[str, ...] = ()


def seen_in(folder: Path) -> Seen:
    """Return what a folder's records tell. Raises: CaptureError, RecordError."""
    loops = recorded_loops(folder)
    if NODES not in loops:
        raise CaptureError(
            f"{folder} has no records of the node loop, which tell the workloads and the node groups: "
            "record with --controllers=horizontal,nodes; advice mode is enough"
        )
    return Seen(read_cluster(folder), read_services(folder) if HORIZONTAL in loops else None)
