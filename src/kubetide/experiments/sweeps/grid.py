"""The grid of a sweep: settings with several values each, every combination of them or a sample, a cell for each seed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubetide.experiments.changes import with_changes
from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError
from kubetide.units.seeds import unit_interval

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


def combinations_of(axes: Sequence[Axis]) -> int:
    """Return how many combinations of values there are."""
    return math.prod(len(axis.values) for axis in axes)


def variants(
    path: Path,
    scenario: Scenario,
    axes: Sequence[Axis],
    patches: Sequence[Path],
    *,
    sample: int | None = None,
) -> list[Variant]:
    """Return every combination of values, or a sample of them, the last axis fastest.

    A combination that makes no valid scenario is a variant with an error; a value that is valid in no combination is
    a mistake.

    Args:
        sample: How many combinations at most; None for all. A larger sample has the combinations of a smaller one.
    Raises: ScenarioError naming such a value and what would be right, or a patch that cannot be applied.
    """
    combinations = combinations_of(axes)
    cells = combinations if sample is None else min(sample, combinations)
    if cells > MOST_CELLS:
        raise ScenarioError(
            f"{cells:,} combinations of settings are more than {MOST_CELLS:,}; leave some values out, or run a --sample"
        )
    if patches:
        scenario = with_changes(path, scenario, sets=(), patches=patches)
    chosen = (
        _sampled(axes, cells) if cells < combinations else itertools.product(*(axis.values for axis in axes))
    )
    found = [_variant(path, scenario, axes, values) for values in chosen]
    for number, axis in enumerate(axes):
        for value in axis.values:
            errors = [one.error for one in found if one.values[number] == value]
            if errors and all(errors):
                raise ScenarioError(f"no combination with {axis.name}={value} can be run: {errors[0]}")
    return found


def _sampled(axes: Sequence[Axis], count: int) -> list[tuple[str, ...]]:
    """Return as many different combinations, drawn at random and the same ones each time, in the order of the grid."""
    drawn: set[tuple[int, ...]] = set()
    for places in zip(*map(_shuffled, axes), strict=True):
        drawn.add(places)
        if len(drawn) == count:
            break
    return [
        tuple(axis.values[place] for axis, place in zip(axes, places, strict=True))
        for places in sorted(drawn)
    ]


def _shuffled(axis: Axis) -> Iterator[int]:
    """Yield places of values without an end: all of them in a random order, then all in another one.

    So every value is in about as many combinations of a sample.
    """
    for turn in itertools.count():
        draws = [(unit_interval(0, axis.name, turn, place), place) for place in range(len(axis.values))]
        yield from (place for _, place in sorted(draws))


def _variant(path: Path, scenario: Scenario, axes: Sequence[Axis], values: tuple[str, ...]) -> Variant:
    sets = settings(axes, values)
    try:
        return Variant(values, with_changes(path, scenario, sets=sets, patches=()))
    except ScenarioError as error:
        return Variant(values, None, str(error))


def settings(axes: Sequence[Axis], values: Sequence[str]) -> list[str]:
    """Return one combination as settings, ``NAME=VALUE`` each."""
    return [f"{axis.name}={value}" for axis, value in zip(axes, values, strict=True)]
