"""How long a deletion waits after tainting its node: a fixed time, or the measured taint latency.

Source: Cluster Autoscaler, --node-delete-delay-after-taint and --dynamic-node-delete-delay-after-taint-enabled.
"""

from __future__ import annotations

from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant, before, hours

REMEMBERED: Duration = hours(1)
"""How long a measured latency counts."""

_ROUND_TRIPS = 2
"""A deletion waits three times the latency; once has passed when the taints have been seen."""


def delay_after_taint(state: State, latency: Duration | None, now: Instant) -> Duration:
    """Return how long deletions begun at ``now`` wait, and note the latency.

    Args:
        state: Its memory of latencies is brought up to date.
        latency: How long the slowest of the taints took until it was seen; None where that is not known. Then the
            fixed delay holds, as upstream does.
        now: When the tick began.
    """
    settings, memory = state.settings, state.memory.scale_down
    if latency is None or not settings.dynamic_node_delete_delay_after_taint_enabled:
        return settings.node_delete_delay_after_taint
    oldest = before(now, REMEMBERED)
    memory.taint_latencies = (
        *(one for one in memory.taint_latencies if one[0] > oldest),
        (now, latency),
    )
    slowest = max(seen for _, seen in memory.taint_latencies)
    return Duration(latency + _ROUND_TRIPS * slowest)
