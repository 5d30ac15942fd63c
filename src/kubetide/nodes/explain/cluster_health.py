"""Why nothing is bought or removed in a whole cluster: too many of its nodes are not ready."""

from __future__ import annotations

from kubetide.nodes.records.export import with_own_memory
from kubetide.nodes.registry.cluster_state import observe
from kubetide.nodes.registry.view import ClusterView
from kubetide.nodes.state import State
from kubetide.units.time import Instant


def unhealthy_text(state: State, view: ClusterView) -> str:
    """Return how many nodes are not ready and how many may be, in a sentence; empty in a healthy cluster.

    Source: Cluster Autoscaler, IsClusterHealthy: the loop ends before it plans anything.
    """
    if view.healthy:
        return ""
    settings, unready, nodes = state.settings, view.total.unready, len(state.nodes)
    return (
        f"{unready} of {nodes} nodes {'is' if unready == 1 else 'are'} not ready, more than "
        f"--ok-total-unready-count={settings.ok_total_unready_count} and "
        f"--max-total-unready-percentage={settings.max_total_unready_percentage:g} allow: nothing is bought or removed "
        "until fewer are."
    )


def unhealthy_now(state: State, now: Instant) -> str:
    """Return the same of a state that no tick has looked at, which is only read."""
    return unhealthy_text(state, observe(with_own_memory(state), now))
