"""What a table is made of, and the texts that cells share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.meta import LabelSelector
from kubetide.units.selectors import Selector
from kubetide.units.time import Duration, Instant, TimeFormatError, between, parse_rfc3339

Cells = Callable[[Json, Instant], list[Any]]


class Column(NamedTuple):
    """A column; one of ``priority`` 1 is shown by ``-o wide`` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> Json:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


class Columns(NamedTuple):
    """The columns of a resource, and how an object fills them at a time."""

    columns: tuple[Column, ...]
    cells: Cells


NAME = Column("Name", format="name")
AGE = Column("Age")

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"


def wide(name: str) -> Column:
    return Column(name, priority=1)


def whole(name: str) -> Column:
    return Column(name, "integer")


def at(obj: Any, *path: str) -> Any:
    """Return the member at a path, None where any part is absent or null."""
    for part in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(part)
    return obj


def number(obj: Any, *path: str) -> int:
    """Return the number at a path, 0 where there is none."""
    return at(obj, *path) or 0


def age(obj: Json, now: Instant) -> str:
    """Return how long ago the object was created."""
    return since(at(obj, "metadata", "creationTimestamp"), now)


def since(timestamp: str | None, now: Instant) -> str:
    """Return how long ago a timestamp was, as ``short_duration`` says it."""
    if not timestamp:
        return UNKNOWN
    try:
        return short_duration(between(parse_rfc3339(timestamp), now))
    except TimeFormatError:
        return UNKNOWN


def short_duration(d: Duration) -> str:
    """Return a duration in two or three figures: ``95s``, ``4m10s``, ``47h``, ``3d2h``, ``2y11d``.

    Source: apimachinery v1.36, util/duration HumanDuration.
    """
    seconds = int(d / 1_000_000_000)
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Return labels as a selector text, ``<none>`` for none."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Json | None) -> str:
    """Return a LabelSelector as text."""
    if not selector:
        return NONE
    return str(Selector.from_object(msgspec.convert(selector, LabelSelector))) or NONE


def containers_and_images(template: Json | None) -> tuple[str, str]:
    """Return the container names and the images of a pod template, joined by commas."""
    containers = at(template, "spec", "containers") or ()
    return (
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    )


def _two(high: int, high_unit: str, low: int, low_unit: str) -> str:
    return f"{high}{high_unit}{low}{low_unit}" if low else f"{high}{high_unit}"
