"""The stabilization windows of an HPA, applied to a proposal: upstream's, and a long one for scale-downs.

The long window holds less, and only what is there: of what was recommended within it as many pods as serve that load at
full use, 1.1 times. It is used where a forecast is asked for, the HPA states no window, and it pays.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from kubetide.forecast.calendar import MARGIN
from kubetide.forecast.long_window import LONG
from kubetide.horizontal.options.forecasting import FULL, share_of
from kubetide.horizontal.rules.stabilization import Stabilized, stabilize, stabilize_both_ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubetide.horizontal.facts.specs import Autoscaler
    from kubetide.horizontal.state import State
    from kubetide.units.time import Duration, Instant


def down_window(spec: Autoscaler) -> Duration:
    """Return the scale-down window of the HPA or the flag."""
    return spec.window if spec.down is None else spec.down.window


def holds_longer(state: State, spec: Autoscaler) -> bool:
    """Return whether scale-downs have the long window as well."""
    return spec.may_hold_longer and state.forecasts.holds_longer(spec.key)


def full_share(spec: Autoscaler) -> float:
    """Return the share of the recommendations of the long window that is held."""
    return min(MARGIN * (share_of(spec) or FULL), 1.0)


def stabilized_of(spec: Autoscaler, state: State, proposal: int, current: int, now: Instant) -> Stabilized:
    """Return the stabilized proposal; the first tick starts from the present number of replicas."""
    remembered = state.recommendations.pairs(spec.key) or [(now, current)]
    window = down_window(spec)
    found = _stabilize(spec, remembered, proposal, current, window, now)
    if not holds_longer(state, spec):
        return found
    highest = stabilize(remembered, 0, window=LONG, now=now).replicas
    held = min(ceil(full_share(spec) * highest - 1e-6), current)
    # What is within the long window must still be remembered.
    slot = _stabilize(spec, remembered, proposal, current, max(window, LONG), now).slot
    return Stabilized(max(found.replicas, held), slot)


def _stabilize(
    spec: Autoscaler,
    remembered: Sequence[tuple[int, int]],
    proposal: int,
    current: int,
    window: Duration,
    now: Instant,
) -> Stabilized:
    if spec.up is None or spec.down is None:
        return stabilize(remembered, proposal, window=window, now=now)
    return stabilize_both_ways(remembered, proposal, current, up=spec.up.window, down=window, now=now)
