"""Several increases in one tick: after a successful one, the remaining pods are evaluated again.

The nodes just bought join the tick's snapshot with the pods that they were bought for, so that the next
increase is for what is really left.

Source: Cluster Autoscaler, --salvo-scale-up and --salvo-scale-up-budget.
"""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import Commands
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.choosing.choice import choose_groups
from kubetide.nodes.scale_up.orchestrator import after_round, increases_of
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.pod import Pod
from kubetide.scheduling import classify_unbound
from kubetide.scheduling.name_order import NameOrder
from kubetide.units.time import Instant


def plan_salvo(state: State, tick: Tick, now: Instant) -> Commands:
    """Return the increases for the pods that the tick's last one left; none if the salvo is over."""
    last = tick.rounds[-1]
    helped = [pod for option in last.chosen for pod in option.pods]
    handled = {id(pod) for pod in helped}
    left = [pod for pod in tick.demand.pods if id(pod) not in handled]
    over = last.result != "ScaleUpSuccessful" or not handled or not left
    late = state.elapsed - tick.begun >= state.settings.salvo_scale_up_budget
    if over or late or not _join(state, tick, helped):
        return Commands(next_step=after_round(state), result=tick.result)
    reasons: list[Reason] = [reason("SalvoGoesOn", pods=len(left))]
    tick.is_open = True
    tick.demand.pods = left
    tick.skipped, tick.verdicts, tick.options, tick.increases = {}, [], [], []
    tick.chosen, tick.drawn_among, tick.cost_summary = (), (), None
    tick.result, tick.error, tick.error_type = "ScaleUpNotTried", "", ""
    state.phases.begin("scaleUp")
    events = choose_groups(state, tick, reasons, now)
    return increases_of(state, tick, events, reasons)


def _join(state: State, tick: Tick, pods: list[Pod]) -> bool:
    """Put the nodes of the last increase into the snapshot, and on them their pods; return whether all fit."""
    last, number = tick.rounds[-1], len(tick.rounds) - 1
    names: list[str] = []
    for increase in last.increases:
        template = tick.templates[increase.group.id]
        if template is None:
            return False
        count = increase.size - increase.group.target_size
        mine = [f"{template.node.metadata.name}-{at}-salvo-{number}" for at in range(count)]
        state.snapshot.add_templates(template.node, template.pods, mine)
        tick.upcoming_nodes.update(dict.fromkeys(mine, increase.group.id))
        names += mine
    return all(_place(state, pod, names) for pod in pods)


def _place(state: State, pod: Pod, names: list[str]) -> bool:
    order = NameOrder(state.snapshot)
    if not order.names:
        return False
    pod_class = classify_unbound(pod)
    among = order.among(names)
    at = order.first_fit(pod_class, state.memory.rotation % len(order.names), among)
    if at < 0:
        return False
    state.memory.rotation = at + 1
    state.snapshot.add_pod(pod, order.names[at], pod_class)
    return True
