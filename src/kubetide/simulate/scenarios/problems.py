"""Problems in the content of a scenario, all reported together."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubetide.objects.yaml_reading import Document
from kubetide.simulate.scenarios.spec import ScenarioError, read_duration
from kubetide.units.quantity import Quantity, QuantityError

_MOST = 1e12
"""Of a load or a price: a greater number is a slip, and what it is multiplied with and summed up to stays finite."""


class Checker:
    """Collects problems, so that one run reports all of them."""

    def __init__(self, path: Path, document: Document) -> None:
        self._path = path
        self._document = document
        self._names: dict[str, str] = {}
        self._errors: list[str] = []

    def name(self, field: str, name: str) -> None:
        """Set the name of a list's entry for messages, if it has one."""
        if name:
            self._names[field] = name

    def that(self, holds: bool, field: str, problem: str) -> None:
        if not holds:
            # A scenario that no file holds, or one in JSON, has no lines to name.
            line = f" line {self._document.line_of(field)}" if self.has_lines else ""
            for entry, name in self._names.items():
                if field.startswith(entry):
                    field = f"{entry} ({name}){field[len(entry) :]}"
            self._errors.append(f"{self._path}{line}: {field}: {problem}")

    def parses(self, parse: Callable[[Any], Any], value: Any, field: str) -> None:
        try:
            parse(value)
        except (ValueError, QuantityError) as error:
            self.that(False, field, str(error))

    def duration(self, text: str, field: str, *, least: int = 0) -> None:
        """Check a duration of at least so many nanoseconds, and return it."""
        self.parses(read_duration, text, field)
        duration = nanoseconds(text)
        self.that(
            duration is None or duration >= least,
            field,
            f"{text!r} must be {'greater than 0' if least else '0 or more'}",
        )

    def number(self, value: float, field: str, *, positive: bool = False) -> None:
        """A number, 0 or more or greater than 0, and not so large that sums over a run overflow."""
        holds = value > 0 if positive else value >= 0
        self.that(holds, field, f"{value} must be {'greater than 0' if positive else '0 or more'}")
        self.that(value <= _MOST, field, f"{value:g} is more than {_MOST:g}; lower it")

    def quantity(self, value: str | int, field: str, *, positive: bool = False) -> None:
        """A quantity, 0 or more, or greater than 0."""
        try:
            milli = Quantity.parse(value).exact_milli()
        except QuantityError:
            self.that(False, field, f"{value!r} is not a quantity such as 500m, 2 or 4Gi{_meant(value)}")
            return
        holds = milli > 0 if positive else milli >= 0
        self.that(holds, field, f"{value!r} must be {'greater than 0' if positive else '0 or more'}")

    def fits(self, errors: tuple[str, ...], field: str, text: str) -> None:
        """A name or label without errors."""
        self.that(not errors, field, f"{text!r}: {'; '.join(errors)}")

    def one_of(self, value: str, known: tuple[str, ...], field: str, what: str) -> None:
        if value in known:
            return
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
        self.that(False, field, f"unknown {what} `{value}`; {hint}")

    def add(self, text: str) -> None:
        """Add a message that already names its place."""
        self._errors.append(text)

    @property
    def has_lines(self) -> bool:
        """Whether the scenario is a YAML file, so that its fields have line numbers."""
        return self._document.node is not None

    def line_of(self, field: str) -> int:
        return self._document.line_of(field)

    @property
    def count(self) -> int:
        """The number of problems found so far."""
        return len(self._errors)

    @property
    def path(self) -> Path:
        return self._path

    def finish(self) -> None:
        if self._errors:
            raise ScenarioError("\n".join(self._errors))


def _meant(value: str | int) -> str:
    """Return what a quantity with a B for bytes is meant to be; Kubernetes writes none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMGTPE])i?[bB]", str(value), re.ASCII)
    if not match:
        return ""
    number, unit = match[1], match[2].upper()
    return f"; did you mean {number}{'k' if unit == 'K' else unit} or {number}{unit}i?"


def nanoseconds(text: str) -> int | None:
    """Return a duration in nanoseconds; None for an invalid one."""
    try:
        return read_duration(text)
    except ValueError:
        return None
