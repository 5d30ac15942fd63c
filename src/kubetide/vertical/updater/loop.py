"""One loop over all VPA objects, as a dialogue: commands go out, what came of each comes back.

What a refused eviction leaves of the budget, and when the rate limit lets the next one through, is known only
then; so the loop yields one command at a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator

from kubetide.objects.meta import Key, key_of
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.time import Instant, after
from kubetide.vertical.resources.boost import is_boosted
from kubetide.vertical.updater.decision import Command, Outcome, Pause, Result
from kubetide.vertical.updater.rules.controlled import controlled_pods, is_live
from kubetide.vertical.updater.rules.groups import uid_of
from kubetide.vertical.updater.rules.late_changes import take_late
from kubetide.vertical.updater.rules.provisioning import announced
from kubetide.vertical.updater.rules.turn import OutOfTime, Turn
from kubetide.vertical.updater.rules.vpa_turn import VpaTurn
from kubetide.vertical.updater.state import State

Loop = Generator[Command | Pause, Outcome, Result]
_Turn = tuple[VerticalPodAutoscaler, list[Pod]]

_AT_ONCE = 500
"""Pods that are looked at between two pauses."""


def deciding(state: State, now: Instant, result: Result | None = None) -> Loop:
    """Yield the commands of one loop, each for its outcome; return the result.

    Args:
        result: What is filled while the loop goes on, and returned; None for a new one.
    """
    settings = state.settings
    turn = Turn(state, now, now, after(now, settings.updater_interval), result or Result())
    if state.boosts_only:
        return (yield from unboosting(state, now, result))
    take_late(turn)
    for why in state.holds:
        turn.say("CacheHeld", detail=why)
        turn.result.skipped = "held"
    if state.holds:
        return turn.result
    if settings.use_admission_controller_status:
        if state.lease is None:
            turn.say("AdmissionStatusMissing", detail=state.lease_error)
            turn.result.skipped = "error"
            return turn.result
        if not state.lease.is_fresh(now, settings.admission_controller_status_lease_timeout):
            turn.say("AdmissionStatusInvalid")
            turn.result.skipped = "invalid"
            return turn.result
    live = [pod for pod in state.pods.values() if is_live(pod)]
    state.memory.keep_only(map(uid_of, live), ("/".join(key_of(pod)) for pod in live), now)
    turns = _in_turn(list(controlled_pods(state, turn.say)), state.memory.served)
    state.memory.served = None
    is_whole = True
    try:
        looked = 0
        for vpa, pods in turns:
            yield from VpaTurn(turn, vpa, pods).run()
            looked += len(pods)
            if looked >= _AT_ONCE:
                looked = 0
                yield Pause()
        state.memory.refused = []
    except OutOfTime:
        is_whole = False
        state.memory.served = turn.served
        state.memory.note_refused(turn.refused)
    turn.result.replacements = announced(turn.replacements, state, is_whole=is_whole)
    return turn.result


def _in_turn(turns: list[_Turn], served: Key | None) -> list[_Turn]:
    """Begin after the VPA that was served last where a loop ran out of time, so that none waits for ever.

    Upstream takes VPA objects in the random order of a Go map, to the same end.
    """
    if served is None:
        return turns
    first = bisect_right(turns, served, key=lambda one: (one[0].metadata.namespace, one[0].metadata.name))
    return turns[first:] + turns[:first]


def unboosting(state: State, now: Instant, result: Result | None = None) -> Loop:
    """Yield the resizes that end start-up boosts whose time is up, of VPAs in any mode (1.8.1).

    It does not ask for the admission controller's lease. The result says when the next boost ends.
    """
    turn = Turn(state, now, now, after(now, state.settings.updater_interval), result or Result())
    take_late(turn)
    if state.settings.gates.cpu_startup_boost and not state.settings.is_1_8_0:
        try:
            for vpa, pods in controlled_pods(state, turn.say, any_mode=True):
                if any(map(is_boosted, pods)):
                    yield from VpaTurn(turn, vpa, pods).unboost()
        except OutOfTime:
            turn.result.next_unboost = turn.deadline
    return turn.result
