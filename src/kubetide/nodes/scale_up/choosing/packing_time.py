"""Time limits of the estimates.

With --max-binpacking-time the choice is among the groups that were asked in time; with --max-nodegroup-binpacking-duration
an estimate adds no node more after its time. Groups are asked part by part, and so are the pods of a long estimate,
each in a step of its own: the time that has passed comes from outside, and a replay ends at the same group and node.
Source: Cluster Autoscaler, binpacking limiter, which looks at the time after each group; static threshold of the
estimation limiter, which looks at it before each node.
"""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import Commands
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.choosing.choice import GROUPS_IN_A_STEP, choose_of_options
from kubetide.nodes.scale_up.choosing.options import pack
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.orchestrator import increases_of
from kubetide.nodes.scale_up.reporting.answers import board_answers
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.units.time import Instant, format_duration


def plan_packing(state: State, tick: Tick, now: Instant) -> Commands:
    """Estimate the next groups; once all are done, or the time is over, return the increases."""
    packing, limit = tick.packing, state.settings.max_binpacking_time
    assert packing is not None, "there are groups that were not asked"
    reasons: list[Reason] = []
    if packing.open_estimate is None and state.elapsed - packing.begun > limit:
        reasons.append(reason("PackingCut", groups=len(packing.left), limit=format_duration(limit)))
        tick.packing = None
    else:
        pack(state, tick, most=GROUPS_IN_A_STEP)
        of_one = format_duration(state.settings.max_nodegroup_binpacking_duration)
        reasons += [reason("EstimateCut", group, limit=of_one) for group in packing.cut]
        packing.cut = []
        if tick.packing is not None:
            return Commands(next_step="pack", reasons=tuple(reasons))
    events = choose_of_options(state, tick, headroom_of(state, tick), reasons, now)
    commands = increases_of(state, tick, events, reasons)
    return Commands(
        actions=commands.actions,
        events=commands.events,
        next_step=commands.next_step,
        answers=board_answers(state, tick),
        result=commands.result,
        reasons=commands.reasons,
    )
