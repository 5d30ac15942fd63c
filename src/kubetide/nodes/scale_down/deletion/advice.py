"""Removals that are only advised: shown like deletions in flight, until their node changes."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_down.memory import Deletion
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.units.time import Duration, Instant, after, between, format_duration, minutes, whole_seconds

STANDS: Duration = minutes(10)
"""After so long the node is evaluated anew, and the advice is given again if it still holds."""


def advise(state: State, deletion: Deletion, now: Instant) -> Reason:
    """Register the removal of a node as advice; return its reason."""
    until = after(now, STANDS)
    state.memory.scale_down.deletions[deletion.node] = replace(
        deletion, phase="advised", due=until, until=until, found=_pods_of(state, deletion.node)
    )
    return reason("RemovalAdvised", deletion.node, group=deletion.group, why=_why(state, deletion, now))


def review_advice(state: State, now: Instant) -> None:
    """Forget advice that is old, was followed, or whose node has other pods now."""
    deletions = state.memory.scale_down.deletions
    for name, deletion in list(deletions.items()):
        if deletion.in_flight:
            continue
        over = deletion.until is not None and deletion.until <= now
        if over or name not in state.nodes or _pods_of(state, name) != deletion.found:
            del deletions[name]


def _pods_of(state: State, node: str) -> tuple[tuple[str, str], ...]:
    if node not in state.snapshot:
        return ()
    return tuple(
        sorted(
            key_of(pod)
            for pod in state.snapshot.pods_on(node)
            if not is_daemon_set_pod(pod) and not is_mirror_pod(pod)
        )
    )


def _why(state: State, deletion: Deletion, now: Instant) -> str:
    since = state.memory.scale_down.unneeded.get(deletion.node, now)
    unneeded = f"unneeded for {format_duration(whole_seconds(between(since, now)))}"
    if not deletion.drain:
        return f"empty and {unneeded}"
    count = len(deletion.reschedule)
    return f"{unneeded}, {count} {'pod' if count == 1 else 'pods'} to be moved"
