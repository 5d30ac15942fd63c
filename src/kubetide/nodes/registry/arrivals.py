"""When the nodes that a group was asked for are expected."""

from __future__ import annotations

from kubetide.nodes.memory import Memory
from kubetide.units.time import Instant, after


def expected_arrival(memory: Memory, group: str) -> Instant | None:
    """Return when all nodes asked for have joined if it takes as long as the slowest so far.

    None where nothing is asked for, or no joining was ever seen.
    """
    request, longest = memory.scale_up_requests.get(group), memory.longest_join.get(group)
    return None if request is None or longest is None else after(request.time, longest)
