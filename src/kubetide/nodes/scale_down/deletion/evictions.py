"""Which pods of a leaving node are evicted, and the outcomes of the evictions.

Source: Cluster Autoscaler, evictor: pods are asked for as long as --max-pod-eviction-time. Of DaemonSet
pods the eviction need not be accepted, and nobody waits for them to end; every other pod must be gone. With --drain-priority-config pods go in turns of
rising priority, each with its own time, and DaemonSet pods are waited for as others are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kubetide.nodes.decision import EventRecord, EvictPod, Outcome
from kubetide.nodes.scale_down.deletion.events import on_pod
from kubetide.nodes.scale_down.drain_rules import Moves
from kubetide.nodes.scale_down.memory import Deletion, Eviction
from kubetide.nodes.scale_down.names import ENABLE_DS_EVICTION
from kubetide.nodes.scale_down.pods import grace_seconds
from kubetide.nodes.settings import DrainTurn, Settings, drain_turns
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod, priority_of
from kubetide.units.time import Duration, Instant, after

GONE = ("NotFound", "404")
"""Codes of refusals that say that the pod is not there any more."""


def evictions_of(moves: Moves, settings: Settings, now: Instant, *, drain: bool) -> tuple[Eviction, ...]:
    """Return the evictions that empty the node.

    Of a drained one all pods but those of DaemonSets go, also those that should have ended by now; of any node DaemonSet
    pods if flags or annotations say so.
    """
    by_default = (
        settings.daemonset_eviction_for_occupied_nodes
        if drain
        else settings.daemonset_eviction_for_empty_nodes
    )
    # As upstream: any value but "true" means no; the flag holds where the annotation is missing.
    default = "true" if by_default else ""
    daemon_pods = [
        pod
        for pod in moves.daemon_pods
        if (pod.metadata.annotations or {}).get(ENABLE_DS_EVICTION, default) == "true"
    ]
    in_turn = drain and bool(settings.drain_priority_config)
    others = sorted((*moves.pods, *moves.skipped), key=key_of) if drain else ()
    return (
        *(_eviction(pod, settings, now, needed=True) for pod in others),
        *(_eviction(pod, settings, now, needed=in_turn) for pod in daemon_pods),
    )


def _eviction(pod: Pod, settings: Settings, now: Instant, *, needed: bool) -> Eviction:
    turns = drain_turns(settings)
    stage = turn_of(pod, turns)
    most = turns[stage].seconds
    own = grace_seconds(pod)
    return Eviction(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        grace_s=min(own, most) if most > 0 else own,
        needed=needed,
        stage=stage,
        next_try=now,
    )


def turn_of(pod: Pod, turns: Sequence[DrainTurn]) -> int:
    """Return the eviction turn of a pod: the last one that begins at its priority or below, else the first."""
    return max(0, bisect_right([turn.priority for turn in turns], priority_of(pod)) - 1)


def left_on_node(evictions: Iterable[Eviction], pods: Sequence[Pod]) -> bool:
    """Return whether any pod that must leave is still there; another pod of the same name does not count."""
    there = {key_of(pod): pod.metadata.uid for pod in pods}
    return any(one.needed and there.get((one.namespace, one.name)) == one.uid for one in evictions)


def settle_evictions(
    deletion: Deletion,
    answers: Sequence[tuple[EvictPod, Outcome]],
    now: Instant,
    retry: Duration,
) -> tuple[Deletion, tuple[EventRecord, ...], int]:
    """Apply the outcomes of evictions; return the deletion, events of first tries, and the number accepted.

    A pod that is not there any more counts as evicted. Others are asked again after ``retry``; those that were put off,
    as the API server is slow, in the next step.
    """
    emitted: list[EventRecord] = []
    accepted = 0
    by_pod = {(action.namespace, action.name, action.uid): outcome for action, outcome in answers}
    pods: list[Eviction] = []
    for one in deletion.pods:
        outcome = by_pod.get((one.namespace, one.name, one.uid))
        if outcome is None:
            pods.append(one)
            continue
        if not outcome.tried:
            again = now if outcome.status == "skipped" else after(now, retry)
            pods.append(replace(one, next_try=again, error=outcome.error or one.error))
            continue
        if one.tries == 0:
            emitted.append(on_pod(one.namespace, one.name, one.uid, "deleting pod for node scale down"))
        gone = outcome.status == "ok" or outcome.error_code in GONE
        accepted += gone
        pods.append(
            replace(
                one,
                tries=one.tries + 1,
                evicted=gone,
                next_try=after(now, retry),
                error="" if gone else outcome.error,
            )
        )
    return replace(deletion, pods=tuple(pods)), tuple(emitted), accepted
