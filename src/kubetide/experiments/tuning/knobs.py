"""Knobs: settings that a search may change, and the values that each may take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from kubetide.experiments.sweeps.grid import read_axis
from kubetide.simulate.scenarios.scenario import ScenarioError

_NUMBER: Final = r"[-+]?\d+(?:\.\d+)?"
_RANGE: Final = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")
_STEPS: Final = 100
"""Steps of a range of decimals that names none."""
MOST_VALUES: Final = 10_000


class Knob(msgspec.Struct, frozen=True):
    """One setting and its values in their order, as text; ``ordered`` where they are numbers from low to high."""

    name: str
    values: tuple[str, ...]
    ordered: bool = False


def read_knobs(texts: Sequence[str]) -> tuple[Knob, ...]:
    """Return all knobs. Raises ScenarioError, also for a repeated one."""
    knobs = tuple(map(read_knob, texts))
    names = [knob.name for knob in knobs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ScenarioError(f"--knob {min(twice)}: there twice; write its values behind one --knob")
    return knobs


def read_knob(text: str) -> Knob:
    """Return the knob of ``NAME=LOW:HIGH``, ``NAME=LOW:HIGH:STEP`` or ``NAME=V1,V2``. Raises ScenarioError."""
    name, _, written = text.partition("=")
    match = _RANGE.fullmatch(written.strip())
    if match is None:
        try:
            axis = read_axis(text)
        except ScenarioError as error:
            raise ScenarioError(
                f"--knob {text}: write it as NAME=LOW:HIGH or NAME=VALUE,VALUE, each value once"
            ) from error
        return Knob(axis.name, axis.values)
    low, high = Decimal(match[1]), Decimal(match[2])
    whole = "." not in written
    step = Decimal(match[3]) if match[3] else Decimal(1) if whole else (high - low) / _STEPS
    if not name.strip() or high <= low or step <= 0 or (high - low) / step >= MOST_VALUES:
        raise ScenarioError(
            f"--knob {text}: write the lower number first, as in NAME=50:80, with fewer than {MOST_VALUES:,} steps"
        )
    count = int((high - low) / step) + 1
    return Knob(name.strip(), tuple(_text(low + index * step) for index in range(count)), ordered=True)


def _text(number: Decimal) -> str:
    return f"{number.normalize():f}"
