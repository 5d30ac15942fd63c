"""Claims for devices and the slices that offer them; classes and templates have names and ages only."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.tables.column import AGE, NAME, Column, Columns, age, at
from kubetide.objects.base import Json
from kubetide.units.time import Instant


def _claim(obj: Json, now: Instant) -> list[Any]:
    states = ["deleted"] if at(obj, "metadata", "deletionTimestamp") else []
    if at(obj, "status", "allocation") is not None:
        states.append("allocated")
        if at(obj, "status", "reservedFor"):
            states.append("reserved")
    return [obj["metadata"]["name"], ",".join(states) or "pending", age(obj, now)]


def _slice(obj: Json, now: Instant) -> list[Any]:
    return [
        obj["metadata"]["name"],
        at(obj, "spec", "nodeName") or "",
        at(obj, "spec", "driver") or "",
        at(obj, "spec", "pool", "name") or "",
        age(obj, now),
    ]


DEVICE_TABLES = {
    "resourceclaims.resource.k8s.io": Columns((NAME, Column("State"), AGE), _claim),
    "resourceslices.resource.k8s.io": Columns(
        (NAME, Column("Node"), Column("Driver"), Column("Pool"), AGE), _slice
    ),
}
