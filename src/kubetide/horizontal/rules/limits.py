"""Limits: how far one tick may go, by policies and by the spec's bounds.

Source: horizontal controller v1.36. Percentages are plain doubles in upstream's order of operations:
10 % more than 100 is 111.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubetide.horizontal.facts.specs import Policy, Rules
from kubetide.horizontal.memory import ScaleEvent
from kubetide.horizontal.rules.proposal import to_int32, wrap32
from kubetide.units.time import Instant

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1


class Limited(NamedTuple):
    """The number within its limits, and the reason for ``ScalingLimited``."""

    replicas: int
    reason: str


def limit_plainly(desired: int, current: int, *, minimum: int, maximum: int) -> Limited:
    """Return the number within the bounds, at most doubled (or 4): for HPAs without behavior."""
    at_once = to_int32(max(2.0 * float(current), 4.0))
    if desired < minimum:
        return Limited(minimum, "TooFewReplicas")
    if maximum > at_once:
        return (
            Limited(at_once, "ScaleUpLimit") if desired > at_once else Limited(desired, "DesiredWithinRange")
        )
    return (
        Limited(maximum, "TooManyReplicas") if desired > maximum else Limited(desired, "DesiredWithinRange")
    )


def limit_by_rules(
    desired: int,
    current: int,
    *,
    minimum: int,
    maximum: int,
    up: Rules,
    down: Rules,
    ups: Sequence[ScaleEvent],
    downs: Sequence[ScaleEvent],
    now: Instant,
) -> Limited:
    """Return the number within the policies and the bound of its direction."""
    if desired > current:
        limit = max(up_limit(current, up, ups, downs, now), current)
        allowed, reason = (limit, "ScaleUpLimit") if maximum > limit else (maximum, "TooManyReplicas")
        if desired > allowed:
            return Limited(allowed, reason)
    elif desired < current:
        limit = min(down_limit(current, down, ups, downs, now), current)
        allowed, reason = (limit, "ScaleDownLimit") if minimum < limit else (minimum, "TooFewReplicas")
        if desired < allowed:
            return Limited(allowed, reason)
    return Limited(desired, "DesiredWithinRange")


def up_limit(
    current: int, rules: Rules, ups: Sequence[ScaleEvent], downs: Sequence[ScaleEvent], now: Instant
) -> int:
    """Return the most replicas that the policies allow now: by the largest change, or with Min the smallest."""
    if rules.select == "Disabled":
        return current
    best, choose = (_INT32_MAX, min) if rules.select == "Min" else (_INT32_MIN, max)
    return _chosen(best, choose, _up_by, current, rules, ups, downs, now)


def down_limit(
    current: int, rules: Rules, ups: Sequence[ScaleEvent], downs: Sequence[ScaleEvent], now: Instant
) -> int:
    """Return the fewest replicas that the policies allow now."""
    if rules.select == "Disabled":
        return current
    best, choose = (_INT32_MIN, max) if rules.select == "Min" else (_INT32_MAX, min)
    return _chosen(best, choose, _down_by, current, rules, ups, downs, now)


def _chosen(
    best: int,
    choose: Callable[[int, int], int],
    by: Callable[[int, Policy], int],
    current: int,
    rules: Rules,
    ups: Sequence[ScaleEvent],
    downs: Sequence[ScaleEvent],
    now: Instant,
) -> int:
    for policy in rules.policies:
        start = current
        if ups or downs:
            since = now - policy.period
            start = wrap32(current - _change_since(ups, since) + _change_since(downs, since))
        best = choose(best, by(start, policy))
    return best


def _change_since(events: Sequence[ScaleEvent], since: int) -> int:
    return sum(event.change for event in events if event.at > since)


def _up_by(start: int, policy: Policy) -> int:
    if policy.percent:
        return to_int32(float(math.ceil(float(start) * (1.0 + float(policy.value) / 100.0))))
    return wrap32(start + policy.value)


def _down_by(start: int, policy: Policy) -> int:
    if policy.percent:
        return to_int32(float(start) * (1.0 - float(policy.value) / 100.0))
    return wrap32(start - policy.value)
