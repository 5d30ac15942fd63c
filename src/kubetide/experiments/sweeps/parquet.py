"""A sweep as Parquet, by pyarrow: the same columns as its CSV, with numbers as numbers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from kubetide.experiments.sweeps.grid import Axis
from kubetide.experiments.sweeps.results import QUANTITIES, Setting, figures_of
from kubetide.experiments.sweeps.sweep import Cell, SweepError
from kubetide.experiments.sweeps.tables import SPREAD_OF


def check_parquet() -> None:
    """Raise SweepError where pyarrow is not installed."""
    _pyarrow()


def cells_parquet(axes: Sequence[Axis], cells: Sequence[Cell]) -> bytes:
    """Return a row a cell: its values, its seed, its figures, and the error where it failed. Raises SweepError."""
    figures = [None if cell.outcome.summary is None else figures_of(cell.outcome.summary) for cell in cells]
    columns: dict[str, list[Any]] = {
        **_values(axes, [cell.values for cell in cells]),
        "seed": [cell.seed for cell in cells],
        **{name: [None if one is None else float(one[name]) for one in figures] for name in QUANTITIES},
        "error": [cell.outcome.error for cell in cells],
    }
    return _written(columns)


def settings_parquet(axes: Sequence[Axis], settings: Sequence[Setting]) -> bytes:
    """Return a row a setting: its values, means and deviations, and whether it is on the front. Raises SweepError."""

    def of(name: str, part: str) -> list[float | None]:
        return [getattr(one.figures[name], part) if one.figures else None for one in settings]

    columns: dict[str, list[Any]] = {
        **_values(axes, [one.values for one in settings]),
        "cells": [one.cells for one in settings],
        "failed": [one.failed for one in settings],
        **{name: of(name, "mean") for name in QUANTITIES},
        **{f"{name}Deviation": of(name, "deviation") for name in SPREAD_OF},
        "paretoFront": [one.front for one in settings],
    }
    return _written(columns)


def _values(axes: Sequence[Axis], rows: Sequence[tuple[str, ...]]) -> dict[str, list[Any]]:
    return {axis.name: [row[number] for row in rows] for number, axis in enumerate(axes)}


def _written(columns: dict[str, list[Any]]) -> bytes:
    arrow, parquet = _pyarrow()
    fields = [(name, _type(arrow, name, values)) for name, values in columns.items()]
    table = arrow.table(columns, schema=arrow.schema(fields))
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _type(arrow: Any, name: str, values: Sequence[Any]) -> Any:
    if name in QUANTITIES or name.endswith("Deviation"):
        return arrow.float64()
    kinds = {bool: arrow.bool_(), int: arrow.int64()}
    return kinds.get(type(values[0]) if values else str, arrow.string())


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra, imported where it is used
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise SweepError(
            "--parquet needs pyarrow: pip install pyarrow, or leave it out and read the CSV"
        ) from error
    return pa, pq
