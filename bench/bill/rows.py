"""Pods with arrival and departure, and types of nodes: read from the two CSV files, and checked."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO, cast

POD_COLUMNS = "arrival_s,departure_s,cpu_m,memory_mib,gpus,selector,class,kind"
TYPE_COLUMNS = "type,cpu_m,memory_mib,gpus,gpu_model,max_pods,usd_per_hour"
KINDS = ("deployment", "job")
Shape = tuple[int, int, int, str]


class PodRow(NamedTuple):
    """A pod of the trace; ``selector`` is the GPU model that its node must have, or empty."""

    arrival_s: float
    departure_s: float
    cpu_m: int
    memory_mib: int
    gpus: int
    selector: str
    group: str
    kind: str

    @property
    def shape(self) -> Shape:
        """Return what it asks for: cpu in thousandths, memory in MiB, GPUs, and their model or empty."""
        return self.cpu_m, self.memory_mib, self.gpus, self.selector


class TypeRow(NamedTuple):
    """A type of nodes; a node group each."""

    name: str
    cpu_m: int
    memory_mib: int
    gpus: int
    gpu_model: str
    max_pods: int
    usd_per_hour: float

    def fits(self, pod: PodRow) -> bool:
        """Return whether an empty node of the type holds the pod."""
        return (
            pod.cpu_m <= self.cpu_m
            and pod.memory_mib <= self.memory_mib
            and pod.gpus <= self.gpus
            and self.max_pods >= 1
            and pod.selector in ("", self.gpu_model)
        )


def read_pods(path: Path) -> list[PodRow]:
    """Return the pods by arrival. Raises OSError; ValueError that names file, line and column."""
    found = []
    for line, row in _lines(path, POD_COLUMNS):
        where = f"{path} line {line}"
        pod = PodRow(
            _number(row, "arrival_s", where),
            _number(row, "departure_s", where),
            _whole(row, "cpu_m", where),
            _whole(row, "memory_mib", where),
            _whole(row, "gpus", where),
            row["selector"],
            row["class"],
            row["kind"],
        )
        if pod.kind not in KINDS:
            raise ValueError(f"{where}: kind {pod.kind!r}: give {' or '.join(KINDS)}")
        if pod.departure_s <= pod.arrival_s:
            raise ValueError(
                f"{where}: departure_s {pod.departure_s:g} is not after arrival_s {pod.arrival_s:g}"
            )
        found.append(pod)
    return sorted(found)


def read_types(path: Path) -> list[TypeRow]:
    """Return the types by name. Raises OSError; ValueError that names file, line and column."""
    found = [
        TypeRow(
            row["type"],
            _whole(row, "cpu_m", f"{path} line {line}"),
            _whole(row, "memory_mib", f"{path} line {line}"),
            _whole(row, "gpus", f"{path} line {line}"),
            row["gpu_model"],
            _whole(row, "max_pods", f"{path} line {line}"),
            _number(row, "usd_per_hour", f"{path} line {line}"),
        )
        for line, row in _lines(path, TYPE_COLUMNS)
    ]
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: type {twice[0]} is listed twice; give each type once")
    return sorted(found)


def check(pods: list[PodRow], types: list[TypeRow]) -> None:
    """Raise ValueError where there is nothing to play."""
    if not pods or not types:
        raise ValueError("give at least one pod and one type")


def impossible(pods: Sequence[PodRow], types: Sequence[TypeRow]) -> list[PodRow]:
    """Return the pods that fit no type."""
    fits: dict[Shape, bool] = {}
    for pod in pods:
        if pod.shape not in fits:
            fits[pod.shape] = any(one.fits(pod) for one in types)
    return [pod for pod in pods if not fits[pod.shape]]


def open_text(path: Path) -> TextIO:
    """Open a text file, or one that gzip has packed."""
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, "rt", encoding="utf-8", newline=""))
    return path.open(encoding="utf-8", newline="")


def _lines(path: Path, columns: str) -> Iterable[tuple[int, dict[str, str]]]:
    with open_text(path) as file:
        reader = csv.DictReader(file)
        if reader.fieldnames is None or list(reader.fieldnames) != columns.split(","):
            raise ValueError(f"{path} line 1: the header must be {columns}")
        for number, row in enumerate(reader, 2):
            if None in row or None in row.values():
                raise ValueError(
                    f"{path} line {number}: not {columns.count(',') + 1} values; the header is {columns}"
                )
            yield number, row


def _number(row: dict[str, str], column: str, where: str) -> float:
    try:
        found = float(row[column])
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise ValueError(f"{where}: {column} {row[column]!r}: give a number of 0 or more")
    return found


def _whole(row: dict[str, str], column: str, where: str) -> int:
    found = _number(row, column, where)
    if found != int(found):
        raise ValueError(f"{where}: {column} {row[column]!r}: give a whole number")
    return int(found)
