"""Pods that controllers have not made yet: with `--enable-proactive-scaleup` upstream scales up for them as well."""

from __future__ import annotations

from tests.nodes.reference.pod_kinds import controller, has_ended, is_terminating, note, unbound
from tests.nodes.reference.up_status import UpStatus
from tests.nodes.reference.world import Json, World

MARK = "podtype"
MARKED = "fakepod"


def with_missing(world: World, waiting: list[Json]) -> list[Json]:
    """Return the waiting pods, and behind them as many copies of a controller's newest pod as it still has to make.

    A controller without a pod gets none. Upstream goes through a map of controllers; here they come in order
    of their uids. On purpose pods that are being deleted do not count as the controller's, and pods on nodes that
    have not started do; upstream has it the other way round.
    """
    if not world.flags.on("enable-proactive-scaleup"):
        return waiting
    living = [one for one in world.listed("Pod") if not has_ended(one) and not is_terminating(one)]
    bound = [one for one in living if one["spec"].get("nodeName")]
    gated = [one for one in living if not one["spec"].get("nodeName") and one["spec"].get("schedulingGates")]
    there = bound + waiting + gated
    made: list[Json] = []
    for uid, desired in sorted(desired_counts(world).items()):
        own = [one for one in there if (controller(one) or {}).get("uid") == uid]
        if own:
            sample = max(own, key=lambda one: one["metadata"].get("creationTimestamp") or "")
            made += [_copy(sample, uid, number) for number in range(1, desired - len(own) + 1)]
    return waiting + made


def desired_counts(world: World) -> dict[str, int]:
    """Return how many pods each controller wants, by uid. Of StatefulSets those that make all pods at once."""
    counts = {one["metadata"]["uid"]: _replicas(one) for one in world.listed("ReplicaSet")}
    counts |= {one["metadata"]["uid"]: _job_pods(one) for one in world.listed("Job")}
    for one in world.listed("StatefulSet"):
        if one["spec"].get("podManagementPolicy") == "Parallel":
            counts[one["metadata"]["uid"]] = _replicas(one)
    return counts


def _replicas(owner: Json) -> int:
    return int(owner["spec"].get("replicas") or 0)


def _job_pods(job: Json) -> int:
    """Return how many pods the Job runs side by side until it is complete."""
    parallelism, completions = job["spec"].get("parallelism"), job["spec"].get("completions")
    succeeded = int((job.get("status") or {}).get("succeeded") or 0)
    is_queue = completions is None and parallelism is not None
    if is_queue and succeeded == 0:
        return int(parallelism)
    side_by_side = 1 if parallelism is None else int(parallelism)
    left = (1 if completions is None else int(completions)) - succeeded
    return max(0, min(left, side_by_side))


def _copy(sample: Json, uid: str, number: int) -> Json:
    copy = unbound(sample)
    meta = copy["metadata"]
    meta["name"] = f"{meta['name']}-copy-{number}"
    meta["uid"] = f"{uid}-{number}"
    meta["annotations"] = {**(meta.get("annotations") or {}), MARK: MARKED}
    return copy


def is_missing(pod: Json) -> bool:
    return note(pod, MARK) == MARKED


def limited(world: World, pods: list[Json]) -> list[Json]:
    """Return the pods without the first of the copies, so many that the limit holds, or without any of them."""
    excess = len(pods) - world.flags.whole("pod-injection-limit")
    left = []
    for one in pods:
        if is_missing(one) and excess > 0:
            excess -= 1
        else:
            left.append(one)
    return left


def hide_missing(up: UpStatus) -> None:
    """Take the copies out of a status, so that neither it nor an event speaks of them."""
    up.remaining = [one for one in up.remaining if not is_missing(one.pod)]
    up.triggered = [one for one in up.triggered if not is_missing(one)]
    up.awaiting = [one for one in up.awaiting if not is_missing(one)]
