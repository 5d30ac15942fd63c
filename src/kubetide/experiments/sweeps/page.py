"""The page of a sweep: cost against what was lost, what each value does, and the cells behind each point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kubetide.experiments.figures import unserved_share
from kubetide.experiments.sweeps.grid import Axis
from kubetide.experiments.sweeps.results import Criterion, Effect, Setting
from kubetide.experiments.sweeps.sweep import Cell
from kubetide.experiments.sweeps.tables import counted_settings, effects_table, settings_table
from kubetide.simulate.outcome.table import decimal, percent, printable
from kubetide.units.lists import counted
from kubetide.web.front import Json, as_file


def write_sweep(
    path: Path,
    name: str,
    axes: Sequence[Axis],
    cells: Sequence[Cell],
    settings: Sequence[Setting],
    effects: Sequence[Effect],
    criterion: Criterion,
) -> None:
    """Write the page of a sweep to one HTML file. Raises OSError."""
    data = sweep_data(name, axes, cells, settings, effects, criterion)
    path.write_text(as_file(f"sweep · {printable(name)}", data, page="sweep"), encoding="utf-8")


def sweep_data(
    name: str,
    axes: Sequence[Axis],
    cells: Sequence[Cell],
    settings: Sequence[Setting],
    effects: Sequence[Effect],
    criterion: Criterion,
) -> Json:
    """Return everything the page shows, as plain JSON values."""
    seeds = sorted({cell.seed for cell in cells})
    return {
        "name": printable(name),
        "period": ", ".join(
            [
                f"{counted_settings(axes, settings)}, {counted(len(seeds), 'seed')}, {counted(len(cells), 'cell')}",
                *(
                    f"{printable(axis.name)}={printable(axis.values[0])}"
                    for axis in axes
                    if len(axis.values) == 1
                ),
            ]
        ),
        "currency": next((cell.outcome.summary.currency for cell in cells if cell.outcome.summary), ""),
        "criterion": criterion.text,
        "least": criterion.least,
        "points": [_point(axes, one, cells, criterion) for one in settings],
        "settings": settings_table(axes, settings, criterion),
        "effects": effects_table(effects, criterion),
        "span": None,
        "failed": [
            f"{_titled(axes, cell.values)}, seed {cell.seed}: {printable(cell.outcome.error)}"
            for cell in cells
            if cell.outcome.error
        ],
    }


def _titled(axes: Sequence[Axis], values: Sequence[str]) -> str:
    return ", ".join(
        f"{printable(axis.name)}={printable(value)}"
        for axis, value in zip(axes, values, strict=True)
        if len(axis.values) > 1
    )


def _point(axes: Sequence[Axis], one: Setting, cells: Sequence[Cell], criterion: Criterion) -> Json:
    place = not one.failed
    return {
        "title": _titled(axes, one.values),
        "cost": one.figures["cost"].mean if place else None,
        "lost": one.figures[criterion.quantity].mean if place else None,
        "front": one.front,
        "cells": {
            "columns": [
                "seed",
                "cost",
                "SLO min",
                "unserved",
                "pending",
                "p95 wait, s",
                "evictions",
                "nodes bought",
            ],
            "rows": [_cell(cell) for cell in cells if cell.values == one.values],
        },
    }


def _cell(cell: Cell) -> list[str]:
    summary = cell.outcome.summary
    if summary is None:
        return [str(cell.seed), "failed", "-", "-", "-", "-", "-", "-"]
    lost = sum(service.slo_minutes_lost for service in summary.services)
    return [
        str(cell.seed),
        decimal(summary.cost, 2),
        str(lost),
        percent(unserved_share(summary.services), 2),
        decimal(summary.pending_pod_minutes, 1),
        decimal(summary.wait_p95_s, 1),
        str(summary.evictions),
        str(summary.nodes_added),
    ]
