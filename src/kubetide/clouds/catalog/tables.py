"""Catalogue files: CSV with a head, or a YAML list of maps with the same names."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from kubetide.clouds.catalog.rows import Catalog, CatalogError, Row, Shape
from kubetide.ports.cloud import Market
from kubetide.units.numbers import NumberError, parse_float, parse_integer
from kubetide.units.quantity import QuantityError, milli, whole

COLUMNS: Final = (
    "type",
    "provider",
    "zone",
    "market",
    "price_per_hour",
    "count",
    "cpu",
    "memory",
    "pods",
    "gpus",
    "allocatable_cpu",
    "allocatable_memory",
    "arch",
    "note",
)
ALIASES: Final[Mapping[str, str]] = {
    "vcpu": "cpu",
    "memory_bytes": "memory",
    "gpu_count": "gpus",
    "max_pods": "pods",
    "ondemand_usd_per_hour": "price_per_hour",
}
"""What public tables of instance types call the same columns."""
MARKETS: Final = ("on-demand", "spot", "reserved")
_YAML: Final = (".yaml", ".yml")


def read_catalog(path: Path) -> Catalog:
    """Return what a file says; ``.yaml`` and ``.yml`` are YAML, any other is CSV. Raises CatalogError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return parse_catalog(text, str(path), is_yaml=path.suffix.lower() in _YAML)


def parse_catalog(text: str, name: str, *, is_yaml: bool = False) -> Catalog:
    """Return what a text says; ``name`` is what messages call it. Raises CatalogError."""
    unknown: dict[str, None] = {}
    rows: list[Row] = []
    for place, raw in _from_yaml(text, name) if is_yaml else _from_csv(text, name):
        cells: dict[str, str] = {}
        for column, value in raw.items():
            known = ALIASES.get(column, column)
            if known not in COLUMNS:
                unknown[column] = None
            elif value:
                cells[known] = value
        rows.append(_row(cells, place))
    if not rows:
        raise CatalogError(f"{name}: no rows; a catalogue needs at least the column `type`")
    _check_unique(rows)
    warning = f"{name}: no effect has {', '.join(unknown)}; the columns are {', '.join(COLUMNS)}"
    return Catalog(name, rows, (warning,) if unknown else ())


def _from_csv(text: str, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    lines = csv.reader(text.splitlines())
    head = [cell.strip() for cell in next(lines, [])]
    if "type" not in head:
        raise CatalogError(f"{name}: the first line has no column `type`; columns are {', '.join(COLUMNS)}")
    for cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        place = f"{name}, line {lines.line_num}"
        if len(cells) > len(head):
            raise CatalogError(f"{place}: {len(cells)} cells, and the first line names {len(head)} columns")
        yield place, {column: cell.strip() for column, cell in zip(head, cells, strict=False)}


def _from_yaml(text: str, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        content = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  # it makes nothing but texts, lists and maps
    except yaml.YAMLError as error:
        raise CatalogError(f"{name}: no YAML: {error}") from error
    if not isinstance(content, list):
        raise CatalogError(f"{name}: no list; write `- {{type: m5.large, price_per_hour: 0.08}}`")
    for number, one in enumerate(content, 1):
        place = f"{name}, item {number}"
        if not isinstance(one, dict) or not all(isinstance(value, str) for value in one.values()):
            raise CatalogError(
                f"{place}: not a map of single values; write {{type: m5.large, price_per_hour: 0.08}}"
            )
        yield place, {key: value.strip() for key, value in one.items()}


def _row(cells: Mapping[str, str], place: str) -> Row:
    if not cells.get("type"):
        raise CatalogError(f"{place}: type is empty; name the instance type")
    market = cells.get("market", "on-demand")
    if market not in MARKETS:
        raise CatalogError(f"{place}: market {market!r}; it is one of {', '.join(MARKETS)}")
    count = _integer(cells, "count", place)
    if count is not None and market != "reserved":
        raise CatalogError(f"{place}: count {count} is for a commitment; set market to reserved")
    shape = Shape(
        cpu=_quantity(cells, "cpu", place, in_milli=True),
        memory=_quantity(cells, "memory", place),
        pods=_integer(cells, "pods", place),
        gpus=_integer(cells, "gpus", place),
        allocatable_cpu=_quantity(cells, "allocatable_cpu", place, in_milli=True),
        allocatable_memory=_quantity(cells, "allocatable_memory", place),
    )
    for resource, part, all_ in (
        ("cpu", shape.allocatable_cpu, shape.cpu),
        ("memory", shape.allocatable_memory, shape.memory),
    ):
        if part is not None and all_ is not None and part > all_:
            raise CatalogError(
                f"{place}: allocatable_{resource} {cells[f'allocatable_{resource}']} is more than {cells[resource]}"
            )
    return Row(
        type=cells["type"],
        provider=cells.get("provider", ""),
        zone=cells.get("zone", ""),
        market=cast("Market", market),
        price_per_hour=_price(cells, place),
        count=count,
        shape=shape,
        arch=cells.get("arch", ""),
        note=cells.get("note", ""),
        place=place,
    )


def _price(cells: Mapping[str, str], place: str) -> float | None:
    text = cells.get("price_per_hour")
    if text is None:
        return None
    try:
        price = parse_float(text)
    except NumberError as error:
        raise CatalogError(f"{place}: price_per_hour: {error}") from error
    if not (math.isfinite(price) and price >= 0):
        raise CatalogError(f"{place}: price_per_hour is {text}; a price is 0 or more")
    return price


def _integer(cells: Mapping[str, str], column: str, place: str) -> int | None:
    if column not in cells:
        return None
    try:
        number = parse_integer(cells[column])
    except NumberError as error:
        raise CatalogError(f"{place}: {column}: {error}") from error
    if number < 0:
        raise CatalogError(f"{place}: {column} is {number}; it is 0 or more")
    return number


def _quantity(cells: Mapping[str, str], column: str, place: str, *, in_milli: bool = False) -> int | None:
    if column not in cells:
        return None
    try:
        amount = milli(cells[column]) if in_milli else whole(cells[column])
    except QuantityError as error:
        raise CatalogError(f"{place}: {column}: {error}") from error
    if amount < 0:
        raise CatalogError(f"{place}: {column} is {cells[column]}; it is more than 0")
    # Tables of types write 0 for what they do not know; no machine has none.
    return amount or None


def _check_unique(rows: list[Row]) -> None:
    """Raise CatalogError where two rows say the same twice: neither of two prices, nor of two shapes, would be surer."""
    prices: dict[tuple[str, ...], Row] = {}
    shapes: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row.provider, row.type, row.zone, row.market)
        if key in prices:
            zone = row.zone or "any zone"
            raise CatalogError(
                f"{row.place}: {row.type}, {zone}, {row.market} stands in {prices[key].place} too; keep one of them"
            )
        prices[key] = row
        if row.shape != Shape():
            known = shapes.setdefault((row.provider, row.type), row)
            if known.shape != row.shape:
                raise CatalogError(
                    f"{row.place}: {row.type} has another shape than in {known.place}; say it once"
                )
