"""The pods that run on a node, and how much of the node they request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from kubetide.nodes.facts.amounts import amount_text
from kubetide.nodes.facts.pods import is_daemon_set_pod
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.resources import PODS, pod_requests_on_node
from kubetide.units.lists import counted, listed

_MOST_NAMED: Final = 12


def running_lines(state: State, node: str) -> tuple[str, ...]:
    """Return which pods run on a node, and what they request of what it offers.

    The snapshot does not say it: until the next tick begins, pods stand on it where they would go.
    """
    if node not in state.snapshot:
        return ()
    pods = [pod for pod in state.pods.values() if pod.spec.node_name == node]
    if not pods:
        return ("runs: no pods",)
    daemons = sum(map(is_daemon_set_pod, pods))
    # Those of DaemonSets come last: they go with their node.
    ordered = sorted(pods, key=lambda pod: (is_daemon_set_pod(pod), key_of(pod)))
    names = listed(["/".join(key_of(pod)) for pod in ordered], _MOST_NAMED)
    of_daemon_sets = f", {daemons} of DaemonSets" if daemons else ""
    return (
        f"runs: {counted(len(pods), 'pod')}{of_daemon_sets}: {names}",
        f"requested: {', '.join(_shares(state, node, pods))}",
    )


def _shares(state: State, node: str, pods: Iterable[Pod]) -> Iterator[str]:
    """Yield, by resource, what the pods of a node request of what it offers; nothing of resources without requests."""
    snapshot = state.snapshot
    requested: Counter[str] = Counter()
    for pod in pods:
        requested.update({PODS: 1, **pod_requests_on_node(pod, snapshot.facts.minor)})
    row, allocatable = snapshot.row(node), snapshot.allocatable
    for resource, taken in sorted(requested.items()):
        if taken:
            offered = int(allocatable[resource][row]) if resource in allocatable else 0
            yield f"{resource} {amount_text(resource, taken)} of {amount_text(resource, offered)}"
