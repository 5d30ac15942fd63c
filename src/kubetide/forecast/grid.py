"""The steps of forecasts, and the lengths of the calendar's rules in steps.

The numbers were found on real series at ticks of 15 s (two weeks of web, stream and taxi load); here they are
rounded up to whole steps.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubetide.units.time import Duration, hours, minutes, seconds

STEP: Final = minutes(1)
"""Length of a step. What lies within one is reduced to its mean and its peak."""

PERIODS: Final = (
    minutes(30), hours(1), hours(2), hours(3), hours(4), hours(6), hours(8), hours(12), hours(24), hours(168),
)  # fmt: skip
"""After so long an onset may come again."""

CLOCK_AHEAD: Final = hours(1)
"""If a tick or step is further before the last one, the clock was ahead, and what it brought is forgotten."""

LOOKED_BACK: Final = 3
"""So many of the last occurrences of a phase are looked at; the second largest of them is forecast."""


class Lengths(NamedTuple):
    """Lengths in steps.

    Attributes:
        near: An onset at s shows within the steps [s - near, s + near].
        base: Steps that the level before an onset is the mean of.
        lead: They end so long before it.
        size: The size of an onset is the peak of so many steps from it on: one behind a limit shows it late.
        pods_before, pods_after: Pods are held for a forecast onset from and until when.
        nodes_before, nodes_after: Likewise nodes.
        trial: What one step counts in the score of a period.
    """

    near: int
    base: int
    lead: int
    size: int
    pods_before: int
    pods_after: int
    nodes_before: int
    nodes_after: int
    trial: float

    @classmethod
    def of(cls, step: Duration) -> Lengths:
        """Return the lengths for a step."""

        def steps(length: Duration) -> int:
            return -(-length // step)

        return cls(
            near=seconds(30) // step,
            base=steps(minutes(10)),
            lead=steps(seconds(105)),
            size=steps(minutes(5)),
            pods_before=steps(seconds(105)),
            pods_after=steps(seconds(90)),
            nodes_before=steps(seconds(315)),
            nodes_after=steps(minutes(5)),
            trial=step / minutes(1),
        )
