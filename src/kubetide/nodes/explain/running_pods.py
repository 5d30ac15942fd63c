"""The pods that run on a node, and how much of the node they request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.nodes.facts.amounts import amount_text
from kubetide.nodes.facts.pods import is_daemon_set_pod
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.units.lists import counted, listed

_MOST_NAMED: Final = 12


def running_lines(state: State, node: str) -> tuple[str, ...]:
    """Return which pods run on a node, and what they request of what it offers."""
    snapshot = state.snapshot
    if node not in snapshot:
        return ()
    pods = snapshot.pods_on(node)
    if not pods:
        return ("runs: no pods",)
    daemons = sum(map(is_daemon_set_pod, pods))
    # Those of DaemonSets come last: they go with their node.
    ordered = sorted(pods, key=lambda pod: (is_daemon_set_pod(pod), key_of(pod)))
    names = listed(["/".join(key_of(pod)) for pod in ordered], _MOST_NAMED)
    of_daemon_sets = f", {daemons} of DaemonSets" if daemons else ""
    return (
        f"runs: {counted(len(pods), 'pod')}{of_daemon_sets}: {names}",
        f"requested: {', '.join(_shares(state, node))}",
    )


def _shares(state: State, node: str) -> Iterator[str]:
    """Yield, by resource, what the pods of a node request of what it offers; nothing of resources without requests."""
    snapshot = state.snapshot
    row = snapshot.row(node)
    requested, allocatable = snapshot.requested, snapshot.allocatable
    for resource in sorted(requested):
        if taken := int(requested[resource][row]):
            offered = amount_text(resource, int(allocatable[resource][row]))
            yield f"{resource} {amount_text(resource, taken)} of {offered}"
