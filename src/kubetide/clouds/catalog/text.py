"""Catalogues and comparisons as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.clouds.catalog.compare import Comparison
from kubetide.clouds.catalog.rows import Row
from kubetide.clouds.catalog.tables import COLUMNS
from kubetide.units.quantity import bytes_to_text, milli_to_text


def plain_rows(rows: Sequence[Row]) -> list[dict[str, str | float | int]]:
    """Return rows as the columns of a file, without those that are empty."""
    return [{name: value for name, value in _cells(row).items() if value not in {"", None}} for row in rows]


def catalog_text(rows: Sequence[Row]) -> str:
    """Return a table of rows; columns that no row has are left out."""
    plain = plain_rows(rows)
    columns = [name for name in COLUMNS if any(name in row for row in plain)]
    return _table([columns, *([str(row.get(name, "")) for name in columns] for row in plain)])


def comparison_text(found: Comparison) -> str:
    """Return the differences as a table, and in a sentence what was not compared."""
    lines: list[str] = []
    if found.differences:
        head = ["type", "what", "catalogue", "cloud", "nodes", "differs by"]
        cells = [
            [one.type, one.what, one.catalog, one.cloud, one.nodes, f"{one.change:+.1f} %"]
            for one in found.differences
        ]
        lines.append(_table([head, *cells]))
    lines.append(
        f"{len(found.differences)} numbers differ, {found.agreed} agree; {found.unused} types are not in use"
    )
    if found.unlisted:
        lines.append(f"in use and not in the catalogue: {', '.join(found.unlisted)}")
    return "\n".join(lines)


def _cells(row: Row) -> dict[str, str | float | int | None]:
    shape = row.shape

    def cpu(amount: int | None) -> str | None:
        return None if amount is None else milli_to_text(amount)

    def memory(amount: int | None) -> str | None:
        return None if amount is None else bytes_to_text(amount)

    return {
        "type": row.type,
        "provider": row.provider,
        "zone": row.zone,
        "market": row.market,
        "price_per_hour": row.price_per_hour,
        "count": row.count,
        "cpu": cpu(shape.cpu),
        "memory": memory(shape.memory),
        "pods": shape.pods,
        "gpus": shape.gpus,
        "allocatable_cpu": cpu(shape.allocatable_cpu),
        "allocatable_memory": memory(shape.allocatable_memory),
        "arch": row.arch,
        "note": row.note,
    }


def _table(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)
