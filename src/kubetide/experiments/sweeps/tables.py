"""A sweep as tables: for people, as CSV, as JSON. The same bytes wherever its cells were run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kubetide.experiments.sweeps.grid import Axis, combinations_of
from kubetide.experiments.sweeps.results import PENDING, QUANTITIES, Criterion, Effect, Setting, figures_of
from kubetide.experiments.sweeps.sweep import Cell
from kubetide.simulate.outcome.table import Table, count, decimal, percent, printable
from kubetide.units.lists import counted

SPREAD_OF = ("cost", "sloMinutes", "pendingPodMinutes")
"""Figures whose deviation over the seeds is in the tables, too."""


def cells_csv(axes: Sequence[Axis], cells: Sequence[Cell]) -> bytes:
    """Return a row a cell: its values, its seed, its figures, and the error where it failed."""
    rows = []
    for cell in cells:
        summary = cell.outcome.summary
        there = {} if summary is None else figures_of(summary)
        figures = [_number(there[name]) if there else "" for name in QUANTITIES]
        rows.append([*cell.values, str(cell.seed), *figures, cell.outcome.error])
    return _csv([*(axis.name for axis in axes), "seed", *QUANTITIES, "error"], rows)


def settings_csv(axes: Sequence[Axis], settings: Sequence[Setting]) -> bytes:
    """Return a row a setting: its values, means over the seeds, deviations, and whether it is on the Pareto front."""
    rows = []
    for one in settings:
        means = [_number(one.figures[name].mean) if one.figures else "" for name in QUANTITIES]
        spreads = [_number(one.figures[name].deviation) if one.figures else "" for name in SPREAD_OF]
        rows.append([*one.values, str(one.cells), str(one.failed), *means, *spreads, str(int(one.front))])
    spread_names = [f"{name}Deviation" for name in SPREAD_OF]
    names = [axis.name for axis in axes]
    return _csv([*names, "cells", "failed", *QUANTITIES, *spread_names, "paretoFront"], rows)


def sweep_json(
    name: str,
    axes: Sequence[Axis],
    cells: Sequence[Cell],
    settings: Sequence[Setting],
    effects: Sequence[Effect],
    criterion: Criterion,
) -> bytes:
    """Return all of it: the axes, every cell with its whole summary, settings, effects."""
    value = {
        "scenario": name,
        "axes": axes,
        "criterion": criterion.quantity,
        "cells": [
            {
                "values": cell.values,
                "seed": cell.seed,
                **(
                    {"error": cell.outcome.error} if cell.outcome.error else {"summary": cell.outcome.summary}
                ),
            }
            for cell in cells
        ],
        "settings": settings,
        "effects": effects,
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def counted_settings(axes: Sequence[Axis], settings: Sequence[Setting]) -> str:
    """Return how many settings there are: ``8 settings``, or of a sample ``6 of 24 settings``."""
    number, all_of_them = len(settings), combinations_of(axes)
    return counted(number, "setting") if number == all_of_them else f"{number} of {all_of_them:,} settings"


def settings_table(axes: Sequence[Axis], settings: Iterable[Setting], criterion: Criterion) -> Table:
    """Return the settings as cells for people, without what never varies; ``*`` marks the Pareto front."""
    others = _others(criterion)
    shown = [number for number, axis in enumerate(axes) if len(axis.values) > 1]
    return Table(
        columns=(
            *(printable(axes[number].name) for number in shown),
            "cost",
            "+-",
            criterion.column,
            "+-",
            *others,
            "",
        ),
        rows=tuple(
            (*(printable(one.values[number]) for number in shown), *_shown(one, criterion, others))
            for one in settings
        ),
    )


def _others(criterion: Criterion) -> dict[str, str]:
    """Return the figures beside cost and criterion: the heading of each column, and the quantity."""
    if criterion is PENDING:
        return {"p95 wait, s": "waitP95", "nodes bought": "nodesBought", "evictions": "evictions"}
    return {
        "unserved": "unserved",
        PENDING.column: PENDING.quantity,
        "pod-min": "podMinutes",
        "evictions": "evictions",
    }


def _shown(one: Setting, criterion: Criterion, others: Mapping[str, str]) -> tuple[str, ...]:
    if not one.figures:
        return ("-",) * (4 + len(others)) + (f"{one.failed} failed",)
    figures = one.figures
    mark = f"{one.failed} failed" if one.failed else "*" if one.front else ""
    return (
        decimal(figures["cost"].mean, 2),
        decimal(figures["cost"].deviation, 2),
        decimal(figures[criterion.quantity].mean, 1),
        decimal(figures[criterion.quantity].deviation, 1),
        *(_cell(name, figures[name].mean) for name in others.values()),
        mark,
    )


def _cell(quantity: str, mean: float) -> str:
    if quantity == "unserved":
        return percent(mean, 2)
    return count(mean) if quantity == "podMinutes" else decimal(mean, 1)


def effects_table(effects: Sequence[Effect], criterion: Criterion) -> Table:
    """Return the main effects as cells for people."""
    return Table(
        columns=("setting", "value", "settings", "cost", criterion.column),
        rows=tuple(
            (
                printable(one.name),
                printable(one.value),
                count(one.settings),
                decimal(one.cost, 2),
                decimal(one.criterion, 1),
            )
            for one in effects
        ),
    )


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
