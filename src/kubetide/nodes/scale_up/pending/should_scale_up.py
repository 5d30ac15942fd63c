"""Whether this tick scales up, for pods or for a ProvisioningRequest.

Source: Cluster Autoscaler, shouldScaleUp and the enforcer of ProvisioningRequests.
"""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.pending.pods import new_until
from kubetide.nodes.scale_up.reporting.events import max_nodes_total
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant


def should_scale_up(
    state: State, tick: Tick, events: list[EventRecord], reasons: list[Reason], now: Instant
) -> bool:
    """Return whether to scale up; else the result of the tick says why not.

    A request that waits for its answer forces scale-up, also for pods if it is their turn. Even then the maximum of nodes is
    reported by its event, and pods that are too new hold scale-down.
    """
    settings, demand = state.settings, tick.demand
    # Pods of a pod set are all alike.
    requested = [] if tick.requests is None else [one[0] for one in tick.requests.pods if one]
    pods = [*demand.pods, *requested]
    if not pods:
        tick.result = "ScaleUpNotNeeded"
        reasons.append(reason("NoDemand"))
        return False
    if settings.max_nodes_total and (ready := _ready_nodes(state)) >= settings.max_nodes_total:
        result = "ScaleUpLimitedByMaxNodesTotal"
        events += max_nodes_total(state)
        reasons.append(reason("MaxNodesTotal", nodes=ready, limit=settings.max_nodes_total))
    elif (until := new_until(pods, state)) > now:
        result, tick.new_until = "ScaleUpInCooldown", until
        if not requested:
            reasons.append(reason("PodsTooNew", pods=len(pods)))
    else:
        return True
    if not requested:
        tick.result = result
    return bool(requested)


def _ready_nodes(state: State) -> int:
    """Return how many nodes are ready and take pods, whether or not the cloud knows their machines."""
    return sum(
        1
        for name, node in state.nodes.items()
        if not node.spec.unschedulable and not state.health(name).unready
    )
