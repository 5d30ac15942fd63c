"""Late machines: those that take much longer to register, or to become ready, than the last ones of their group took.

With ``--replace-late-nodes`` a late machine is not waited for: the pods that it was bought for are planned for again. It
is deleted only after ``--max-node-provision-time``, and is used if it comes after all. Where a machine is late that was
bought after another one was found late, the group is backed off.

Beyond Cluster Autoscaler, which waits for each machine until that time is over; off by default.
"""

from __future__ import annotations

from typing import Final

from kubetide.nodes.memory import GroupLearned, TimeTaken
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.arrivals import recent_times, slowest_of, slowest_text
from kubetide.nodes.registry.failures import (
    Findings,
    back_off,
    is_zero_or_max,
    max_provision_time,
    max_startup_time,
)
from kubetide.nodes.registry.view import Counts
from kubetide.nodes.scale_up.reporting.events import on_status
from kubetide.nodes.state import State
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    between,
    format_duration,
    instant_of,
    minutes,
    whole_seconds,
)

_TIMES: Final = 2
"""A machine is late after this many times what the slowest of the last ones took."""
_AT_LEAST: Final = minutes(3)


def note_registered(state: State, group_id: str, took: Duration, now: Instant) -> None:
    """Note how long a machine took to register, from the tick that first saw it."""
    times = state.memory.register_times
    state.memory.register_times = {
        **times,
        group_id: recent_times((*times.get(group_id, ()), TimeTaken(now, took))),
    }


def late_machines(state: State, group: NodeGroup, counts: Counts, now: Instant) -> list[str]:
    """Return the late machines of a group: provider ids of those that have not registered, names of nodes not ready.

    None where nobody knows how long they take, and of groups that exist at zero or at their maximum, as none of their
    machines can be replaced alone.
    """
    if not (counts.unregistered or counts.not_started) or is_zero_or_max(group):
        return []
    to_register, to_be_ready = _limits(state, group)
    return [
        *(one for one in counts.unregistered if _is_over(state, one, to_register, now)),
        *(one for one in counts.not_started if _is_over(state, one, to_be_ready, now)),
    ]


def note_late(state: State, counts: dict[str, Counts], findings: Findings, now: Instant) -> None:
    """Report machines that have become late; back a group off whose machine is late though it was bought to replace another."""
    if not state.settings.replace_late_nodes:
        return
    memory = state.memory
    former, memory.late = memory.late, {}
    for group_id, group in state.groups.items():
        mine, known = counts[group_id], former.get(group_id, {})
        # One that is given up, and is to be deleted, is still why the request was not fulfilled in time.
        kept = {one: since for one, since in known.items() if one in mine.long_unregistered}
        late = kept | {one: known.get(one, now) for one in mine.late}
        if not late:
            continue
        memory.late[group_id] = late
        for one in mine.late:
            if one in known:
                continue
            text = late_text(state, group, one, now)
            findings.reasons.append(reason("MachineLate", group_id, why=text))
            findings.events += on_status(state, "Warning", "NodeLate", f"Node group {group_id}: {text}")
            if any(known[other] <= _since(state, one) for other in late if other in known):
                back_off(state, group_id, "late", text, findings, now)


def late_text(state: State, group: NodeGroup, one: str, now: Instant) -> str:
    """Return since when a late machine is awaited, and how long others took."""
    waited = format_duration(whole_seconds(between(_since(state, one), now)))
    if one in state.nodes:
        times = state.memory.learned.groups[group.id].starts
        seen = f"node {one} is late: it is not ready {waited} after it was created"
    else:
        times = state.memory.register_times[group.id]
        seen = f"machine {one} is late: it has not registered for {waited}"
    return f"{seen}, {slowest_text(slowest_of(times), len(times))}"


def _limits(state: State, group: NodeGroup) -> tuple[Duration | None, Duration | None]:
    """Return after how long a machine is late to register, and a node to be ready; None for never."""
    memory = state.memory
    starts = memory.learned.groups.get(group.id, GroupLearned()).starts
    return (
        _limit(
            slowest_of(memory.register_times.get(group.id, ())), max_provision_time(group, state.settings)
        ),
        _limit(slowest_of(starts), max_startup_time(group, state.settings)),
    )


def _limit(slowest: Duration, given_up: Duration) -> Duration | None:
    limit = Duration(max(_AT_LEAST, _TIMES * slowest))
    return limit if slowest and limit < given_up else None


def _is_over(state: State, one: str, limit: Duration | None, now: Instant) -> bool:
    return limit is not None and after(_since(state, one), limit) < now


def _since(state: State, one: str) -> Instant:
    """Return since when a machine is there: since it was first seen, or since its node was created."""
    node = state.nodes.get(one)
    if node is None:
        return state.memory.unregistered_since[one]
    created = instant_of(node.metadata.creation_timestamp)
    assert created is not None, "a node without it is not starting"
    return created
