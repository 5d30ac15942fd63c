"""The columns that ``kubectl get`` shows: one entry a resource.

Source: the table printers of Kubernetes v1.36 (pkg/printers/internalversion), server-side printing.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.tables.cluster import CLUSTER_TABLES
from kubetide.embedded.apiserver.tables.column import AGE, NAME, Columns, age
from kubetide.embedded.apiserver.tables.custom import custom_columns
from kubetide.embedded.apiserver.tables.devices import DEVICE_TABLES
from kubetide.embedded.apiserver.tables.inert import INERT_TABLES
from kubetide.embedded.apiserver.tables.pods import POD_TABLES
from kubetide.embedded.apiserver.tables.storage import STORAGE_TABLES
from kubetide.embedded.apiserver.tables.workloads import WORKLOAD_TABLES
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.units.time import Instant

__all__ = ["columns_of", "row_of"]

_TABLES: dict[str, Columns] = {
    **POD_TABLES,
    **CLUSTER_TABLES,
    **WORKLOAD_TABLES,
    **STORAGE_TABLES,
    **DEVICE_TABLES,
    **INERT_TABLES,
}

_OTHERS = Columns((NAME, AGE), lambda obj, now: [obj["metadata"]["name"], age(obj, now)])


def columns_of(kind: Kind[Any]) -> list[Json]:
    """Return the columnDefinitions of a kind's table."""
    return [column.definition() for column in _columns(kind).columns]


def row_of(kind: Kind[Any], obj: Json, now: Instant) -> list[Any]:
    """Return the cells of an object, as many as the kind has columns."""
    return _columns(kind).cells(obj, now)


def _columns(kind: Kind[Any]) -> Columns:
    if isinstance(kind, CustomKind):
        return custom_columns(kind)
    return _TABLES.get(kind.resource, _OTHERS)
