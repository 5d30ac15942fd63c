"""The grid of a sweep: settings with several values each, every combination of them, a cell for each seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import msgspec

from kubetide.experiments.changes import with_changes
from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError

MOST_CELLS: Final = 100_000
_OPENING, _CLOSING, _QUOTES = "[{", "]}", "\"'"


class Axis(msgspec.Struct, frozen=True):
    """One setting and the values that it takes, as they were written."""

    name: str
    values: tuple[str, ...]


class Variant(msgspec.Struct, frozen=True):
    """One combination of values, in the order of the axes.

    Attributes:
        scenario: With the values set; None where they make no scenario that can be run.
        error: Why not.
    """

    values: tuple[str, ...]
    scenario: Scenario | None
    error: str = ""


def read_axis(text: str) -> Axis:
    """Read ``NAME=V1,V2``: values of YAML, parted by commas outside of quotes and brackets.

    Raises: ScenarioError.
    """
    name, equals, written = text.partition("=")
    if not equals or not name.strip():
        raise ScenarioError(
            f"--set {text}: write it as NAME=VALUE,VALUE such as expander=least-waste,least-cost"
        )
    values = tuple(_parted(written))
    twice = {value for value in values if values.count(value) > 1}
    if twice:
        raise ScenarioError(f"--set {text}: the value {min(twice)!r} is there twice; write each value once")
    return Axis(name.strip(), values)


def _parted(text: str) -> Iterator[str]:
    depth, quote, start = 0, "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def read_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Read every setting of a sweep. Raises ScenarioError, also for a name that is set twice."""
    axes = tuple(map(read_axis, texts))
    names = [axis.name for axis in axes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ScenarioError(f"--set {min(twice)}: set twice; write all of its values behind one --set")
    return axes


def variants(path: Path, scenario: Scenario, axes: Sequence[Axis], patches: Sequence[Path]) -> list[Variant]:
    """Return every combination of values, the last axis fastest.

    A combination that makes no valid scenario is a variant with an error; a value that is valid in no combination is
    a mistake.

    Raises: ScenarioError naming such a value and what would be right, or a patch that cannot be applied.
    """
    cells = 1
    for axis in axes:
        cells *= len(axis.values)
    if cells > MOST_CELLS:
        raise ScenarioError(
            f"{cells:,} combinations of settings are more than {MOST_CELLS:,}; leave some values out"
        )
    if patches:
        scenario = with_changes(path, scenario, sets=(), patches=patches)
    found = [_variant(path, scenario, axes, values) for values in product(*(axis.values for axis in axes))]
    for number, axis in enumerate(axes):
        for value in axis.values:
            errors = [one.error for one in found if one.values[number] == value]
            if all(errors):
                raise ScenarioError(f"no combination with {axis.name}={value} can be run: {errors[0]}")
    return found


def _variant(path: Path, scenario: Scenario, axes: Sequence[Axis], values: tuple[str, ...]) -> Variant:
    sets = settings(axes, values)
    try:
        return Variant(values, with_changes(path, scenario, sets=sets, patches=()))
    except ScenarioError as error:
        return Variant(values, None, str(error))


def settings(axes: Sequence[Axis], values: Sequence[str]) -> list[str]:
    """Return one combination as settings, ``NAME=VALUE`` each."""
    return [f"{axis.name}={value}" for axis, value in zip(axes, values, strict=True)]
