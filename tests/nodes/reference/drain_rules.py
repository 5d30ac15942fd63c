"""Which pods of a node must go elsewhere before it can be removed, and which keep it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.disruptions import Disruptions
from tests.nodes.reference.pod_kinds import controller, is_daemon, is_mirror, note
from tests.nodes.reference.world import Json, World

from kubetide.units.time import parse_rfc3339, seconds

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
KNOWN_OWNERS = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")

MOVE, SKIP, WAIT = "move", "skip", "wait"
"""What becomes of a pod that does not block: it moves, nobody asks about it, or the node waits for it to end."""


@dataclass
class Moves:
    """Pods of a node by what becomes of them. After a blocking pod the others are not looked at."""

    pods: list[Json] = field(default_factory=list)
    daemons: list[Json] = field(default_factory=list)
    on_completion: list[Json] = field(default_factory=list)
    blocking: tuple[Json, str] | None = None


def pods_to_move(
    world: World, pods: list[Json], disruptions: Disruptions, now: int, *, check_owners: bool = True
) -> Moves:
    """Sort pods by the rules, up to the first that blocks. Without `check_owners` nobody asks for their controllers."""
    moves = Moves()
    for pod in pods:
        verdict = _verdict(world, pod, disruptions, now, check_owners)
        if verdict == WAIT:
            moves.on_completion.append(pod)
        elif verdict == MOVE:
            (moves.daemons if is_daemon(pod) else moves.pods).append(pod)
        elif verdict != SKIP:
            moves.blocking = (pod, verdict)
            break
    return moves


def _verdict(world: World, pod: Json, disruptions: Disruptions, now: int, check_owners: bool) -> str:
    """Return MOVE, SKIP or WAIT, or the reason of a block. The first rule that has an answer gives it."""
    flags = world.flags
    only_known = flags.on("skip-nodes-with-custom-controller-pods")
    if is_mirror(pod) or is_long_terminating(pod, now):
        return SKIP
    if only_known and check_owners:
        refusal = _owner_refusal(world, pod)
        if refusal is not None:
            return refusal
    if is_daemon(pod) or note(pod, SAFE) == "true" or _is_terminal(pod):
        return MOVE
    if note(pod, SAFE) == "on-completion":
        return WAIT
    owner = controller(pod)
    if owner is None or (only_known and owner["kind"] not in KNOWN_OWNERS):
        return "NotReplicated"
    if flags.on("skip-nodes-with-system-pods") and _is_lone_system_pod(pod, disruptions):
        # The age decides alone: the rules below are not asked any more.
        return MOVE if _is_old_system_pod(world, pod, now) else "UnmovableKubeSystemPod"
    if note(pod, SAFE) == "false":
        return "NotSafeToEvictAnnotation"
    if flags.on("skip-nodes-with-local-storage") and _has_local_storage(pod):
        return "LocalStorageRequested"
    if any(one.allowed < 1 for one in disruptions.matching(pod)):
        return "NotEnoughPdb"
    return MOVE


def is_long_terminating(pod: Json, now: int) -> bool:
    """Return whether the pod should have been gone for more than 30 seconds."""
    deleted = pod["metadata"].get("deletionTimestamp")
    if not deleted:
        return False
    grace = pod["spec"].get("terminationGracePeriodSeconds")
    return parse_rfc3339(deleted) + seconds(30 if grace is None else grace) + seconds(30) < now


def _owner_refusal(world: World, pod: Json) -> str | None:
    owner = controller(pod)
    if owner is None:
        return None
    kind = owner["kind"]
    if kind == "ReplicationController":
        return _few_replicas(world, pod, owner)
    if kind in ("DaemonSet", "StatefulSet") and not owner["apiVersion"].startswith("apps/"):
        return None  # only those of Kubernetes' own group are looked up
    if is_daemon(pod):
        if kind != "DaemonSet":
            return None
        return None if _found(world, pod, owner) else "ControllerNotFound"
    if kind == "ReplicaSet":
        return _few_replicas(world, pod, owner)
    if kind in ("Job", "StatefulSet"):
        return None if _found(world, pod, owner) else "ControllerNotFound"
    return None


def _found(world: World, pod: Json, owner: Json) -> Json | None:
    key = (pod["metadata"].get("namespace", ""), owner["name"])
    return world.objects.get(owner["kind"], {}).get(key)


def _few_replicas(world: World, pod: Json, owner: Json) -> str | None:
    found = _found(world, pod, owner)
    if found is None:
        return "ControllerNotFound"
    replicas = found["spec"].get("replicas")
    if replicas is not None and replicas < world.flags.whole("min-replica-count"):
        return "MinReplicasReached"
    return None


def replicas_of(world: World, pod: Json) -> int | None:
    """Return how many pods the pod's controller wants, if it is there and says so."""
    owner = controller(pod)
    found = _found(world, pod, owner) if owner is not None else None
    return None if found is None else found["spec"].get("replicas")


def _is_terminal(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    never_again = pod["spec"].get("restartPolicy") in ("Never", "OnFailure")
    return phase == "Failed" or (phase == "Succeeded" and never_again)


def _is_lone_system_pod(pod: Json, disruptions: Disruptions) -> bool:
    return pod["metadata"].get("namespace") == "kube-system" and not disruptions.matching(pod)


def _is_old_system_pod(world: World, pod: Json, now: int) -> bool:
    created = pod["metadata"].get("creationTimestamp")
    limit = world.flags.duration("blocking-system-pod-distruption-timeout")
    return bool(created) and now > parse_rfc3339(created) + limit


def _has_local_storage(pod: Json) -> bool:
    safe = (note(pod, SAFE_VOLUMES) or "").split(",")
    for volume in pod["spec"].get("volumes") or ():
        empty = volume.get("emptyDir")
        local = "hostPath" in volume or (empty is not None and empty.get("medium") != "Memory")
        if local and volume["name"] not in safe:
            return True
    return False
