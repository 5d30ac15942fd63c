"""Disruption budgets: how many nodes may be disrupted at once, by reason and time of the week.

Source: Karpenter 1.15, NodePool ``spec.disruption.budgets``: a count or a share of the nodes (rounded up), for some
reasons or all; with a schedule it holds for its duration from each activation on (UTC). The strictest one that holds
counts; without any the number is not limited.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kubetide.units.time import Duration, Instant, before, parse_duration

if TYPE_CHECKING:
    from kubetide.units.cron import Schedule

REASONS = ("Empty", "Underutilized")
"""Empty nodes that are removed; nodes that are drained, by scale-down or by consolidation."""
_EXAMPLE = 'nodes=10% reasons=Empty,Underutilized schedule="0 9 * * 1-5" duration=8h'
_NODES = re.compile(r"^(\d+)(%?)$")
_MOST_SHARE = 100


class Budget(NamedTuple):
    """One budget. ``schedule`` and ``duration`` are either both set or both None."""

    number: int
    is_share: bool
    reasons: tuple[str, ...]
    schedule: Schedule | None = None
    duration: Duration | None = None

    def holds(self, now: Instant) -> bool:
        """Return whether the budget is active now."""
        if self.schedule is None or self.duration is None:
            return True
        began = self.schedule.next(before(now, self.duration))
        return began is not None and began <= now

    def most(self, nodes: int) -> int:
        """Return how many of ``nodes`` may be disrupted at once."""
        return -(-nodes * self.number // 100) if self.is_share else self.number


@lru_cache(maxsize=64)
def parse_budgets(text: str) -> tuple[Budget, ...]:
    """Return the budgets of a flag, separated by semicolons. Raises ValueError that names the flag and the fix."""
    return tuple(_parse(one.strip()) for one in text.split(";") if one.strip())


def allowed(
    budgets: Sequence[Budget], reason: str, *, nodes: int, disrupted: int, now: Instant
) -> int | None:
    """Return how many more nodes may be disrupted for this reason now; None for no limit.

    Args:
        budgets: All of them.
        reason: One of ``REASONS``.
        nodes: How many nodes there are.
        disrupted: How many of them are on their way out, for whatever reason, or not ready.
        now: The time.
    """
    most = [one.most(nodes) for one in budgets if reason in one.reasons and one.holds(now)]
    return max(0, min(most) - disrupted) if most else None


def _parse(text: str) -> Budget:
    def wrong(why: str) -> ValueError:
        return ValueError(f"--consolidation-budgets: budget {text!r}: {why}; give such as {_EXAMPLE}")

    try:
        parts = [part.partition("=") for part in shlex.split(text)]
    except ValueError as error:
        raise wrong(str(error)) from error
    said = {name: value for name, _, value in parts}
    if unknown := [name for name in said if name not in ("nodes", "reasons", "schedule", "duration")]:
        raise wrong(f"no field {unknown[0]!r}")
    if len(said) < len(parts):
        raise wrong("a field is given twice")
    found = _NODES.match(said.get("nodes", ""))
    if found is None or (found[2] and int(found[1]) > _MOST_SHARE):
        raise wrong("nodes must be a count or a share from 0% to 100%")
    reasons = tuple(said["reasons"].split(",")) if "reasons" in said else REASONS
    if unknown := [one for one in reasons if one not in REASONS]:
        raise wrong(f"no reason {unknown[0]!r}, there are {' and '.join(REASONS)}")
    if ("schedule" in said) != ("duration" in said):
        raise wrong("schedule and duration go together")
    number, is_share = int(found[1]), bool(found[2])
    if "schedule" not in said:
        return Budget(number, is_share, reasons)
    from kubetide.units.cron import CronError, parse_cron  # noqa: PLC0415  few budgets have a schedule

    try:
        schedule, duration = parse_cron(said["schedule"]), parse_duration(said["duration"])
    except (CronError, ValueError) as error:
        raise wrong(str(error)) from error
    if duration <= 0:
        raise wrong("duration must be longer than 0")
    return Budget(number, is_share, reasons, schedule, duration)
