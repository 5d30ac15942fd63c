"""The columns of custom kinds: those that their definition prints.

Source: apiextensions-apiserver v1.36, pkg/registry/customresource/tableconvertor; of JSONPath the
parts that printer columns use: members, indexes, and filters on one member (``[?(@.type=="Ready")]``).
"""

from __future__ import annotations

import re
from typing import Any

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.tables.column import AGE, NAME, Column, Columns, age, since
from kubetide.objects.base import Json
from kubetide.objects.definition import PrinterColumn
from kubetide.units.time import Instant

_STEP = re.compile(
    r"""\.(?P<member>(?:\\.|[^.\[\\])+)"""
    r"""|\[(?P<index>\d+)\]"""
    r"""|\['(?P<quoted>[^']+)'\]"""
    r"""|\[\?\(@\.(?P<key>[\w.]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]""",
)


def custom_columns(kind: CustomKind) -> Columns:
    """Return the columns of a custom kind: name and age, where its definition prints none."""
    printed = kind.columns
    if not printed:
        return Columns((NAME, AGE), lambda obj, now: [obj["metadata"]["name"], age(obj, now)])
    columns = tuple(
        Column(one.name, one.type, one.format, one.priority, _description(one)) for one in printed
    )
    return Columns(
        (NAME, *columns),
        lambda obj, now: [obj["metadata"]["name"], *(_cell(one, obj, now) for one in printed)],
    )


def _description(column: PrinterColumn) -> str:
    path = f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return column.description or path


def _cell(column: PrinterColumn, obj: Json, now: Instant) -> Any:
    value = _value_at(obj, column.json_path)
    if column.type == "date":
        return since(value, now) if value is None or isinstance(value, str) else None
    if value is None or column.type != "string" or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _value_at(value: Any, path: str) -> Any:
    """Return the first value at a path, None where there is none or the path is of another form."""
    end = 0
    while end < len(path):
        step = _STEP.match(path, end)
        if step is None:
            return None
        end = step.end()
        value = _step(value, step)
    return value


def _step(value: Any, step: re.Match[str]) -> Any:
    if step["index"] is not None:
        place = int(step["index"])
        return value[place] if isinstance(value, list) and place < len(value) else None
    if step["key"] is not None:
        items = value if isinstance(value, list) else ()
        return next(
            (item for item in items if isinstance(item, dict) and item.get(step["key"]) == step["value"]),
            None,
        )
    member = step["quoted"] or step["member"].replace("\\", "")
    return value.get(member) if isinstance(value, dict) else None
