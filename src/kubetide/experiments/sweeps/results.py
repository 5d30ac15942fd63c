"""Results of a sweep: figures of each setting over its seeds, the Pareto front, the main effect of each value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import msgspec

from kubetide.experiments.policies.evaluate import total_of
from kubetide.experiments.sweeps.grid import Axis
from kubetide.experiments.sweeps.sweep import Cell
from kubetide.simulate.outcome.summary import Summary

QUANTITIES = (
    "cost",
    "sloMinutes",
    "unserved",
    "pendingPodMinutes",
    "waitMedian",
    "waitP95",
    "waitLongest",
    "podMinutes",
    "nodeHours",
    "podStarts",
    "evictions",
    "nodesBought",
    "nodesRemoved",
    "nodesShortLived",
    "nodesBoughtBack",
    "rescales",
    "decisions",
)
"""Figures of a run, in the words of policies."""


class Criterion(msgspec.Struct, frozen=True):
    """What settings are judged by beside their cost.

    Attributes:
        quantity: The figure, in the words of policies.
        column: The heading of its column.
        text: The figure in words.
        least: What a setting with the least of it does, as the end of a sentence.
    """

    quantity: str
    column: str
    text: str
    least: str


SLO_MINUTES = Criterion("sloMinutes", "SLO min", "SLO minutes lost", "loses as few SLO minutes")
PENDING = Criterion("pendingPodMinutes", "pending", "pending pod-minutes", "lets pods wait as little")


def criterion_of(cells: Sequence[Cell]) -> Criterion:
    """Return SLO minutes; without services, which alone can lose any, how long pods waited for nodes."""
    there = [cell.outcome.summary for cell in cells if cell.outcome.summary is not None]
    return SLO_MINUTES if not there or any(one.services for one in there) else PENDING


class Spread(msgspec.Struct, frozen=True):
    """The mean of a figure, and the standard deviation of the sample; 0 of a single one."""

    mean: float
    deviation: float


class Setting(msgspec.Struct, frozen=True):
    """A combination of values over its seeds.

    Attributes:
        cells: Its seeds that have a result.
        failed: Those that have none; a setting with one is on no front, and in no effect.
        front: Whether no other setting is at most as high in cost and criterion, and lower in one of them.
    """

    values: tuple[str, ...]
    cells: int
    failed: int
    figures: dict[str, Spread]
    front: bool = False


class Effect(msgspec.Struct, frozen=True):
    """The mean result of the settings with one value of one axis."""

    name: str
    value: str
    settings: int
    cost: float
    criterion: float


def figures_of(summary: Summary) -> dict[str, float]:
    """Return the figures of one run."""
    return {name: total_of(summary, name, "") for name in QUANTITIES}


def settings_of(cells: Sequence[Cell], criterion: Criterion) -> list[Setting]:
    """Return the settings of the cells, in their order, with the Pareto front marked."""
    found = [_setting(values, list(group)) for values, group in groupby(cells, key=lambda cell: cell.values)]
    front = pareto_front([_place(one, criterion) for one in found if _complete(one)])
    return [
        msgspec.structs.replace(one, front=_complete(one) and _place(one, criterion) in front)
        for one in found
    ]


def _setting(values: tuple[str, ...], cells: Sequence[Cell]) -> Setting:
    there = [figures_of(cell.outcome.summary) for cell in cells if cell.outcome.summary is not None]
    return Setting(
        values=values,
        cells=len(there),
        failed=len(cells) - len(there),
        figures={name: spread([one[name] for one in there]) for name in QUANTITIES} if there else {},
    )


def spread(values: Sequence[float]) -> Spread:
    """Return mean and deviation; exact sums, so that the order does not matter."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Spread(mean, 0.0)
    return Spread(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)))


def _complete(one: Setting) -> bool:
    return not one.failed


def _place(one: Setting, criterion: Criterion) -> tuple[float, float]:
    return one.figures["cost"].mean, one.figures[criterion.quantity].mean


def pareto_front(points: Sequence[tuple[float, float]]) -> set[tuple[float, float]]:
    """Return the points of which no other is at most as high in both, and lower in one."""
    front: set[tuple[float, float]] = set()
    least = math.inf
    for first, second in sorted(set(points)):
        if second < least:
            front.add((first, second))
            least = second
    return front


def effects_of(axes: Sequence[Axis], settings: Sequence[Setting], criterion: Criterion) -> list[Effect]:
    """Return the main effect of each value of each axis with several: the mean of the settings that have it."""
    complete = [one for one in settings if _complete(one)]
    found = []
    for number, axis in enumerate(axes):
        for value in axis.values if len(axis.values) > 1 else ():
            places = [_place(one, criterion) for one in complete if one.values[number] == value]
            if places:
                cost, lost = (spread(column).mean for column in zip(*places, strict=True))
                found.append(Effect(axis.name, value, len(places), cost, lost))
    return found
