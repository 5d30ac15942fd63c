"""Pods that wait for a node, and by which scheduler."""

from __future__ import annotations

from tests.nodes.reference.pod_kinds import is_terminating
from tests.nodes.reference.world import Flags, Json


def waiting_pods(pods: list[Json], flags: Flags) -> list[Json]:
    """Return the pods that schedulers found no place for; behind them those that bypassed schedulers have not looked at.

    With a list of allowed schedulers only their pods are among them.
    """
    allowed = flags.names("allowed-scheduler-names")
    bypassed = flags.names("bypassed-scheduler-names")
    free = [one for one in pods if not one["spec"].get("nodeName") and not is_terminating(one)]
    if allowed:
        free = [one for one in free if one["spec"].get("schedulerName") in allowed]
    new = [one for one in free if one["spec"].get("schedulerName") in bypassed and _is_unprocessed(one)]
    return [one for one in free if _is_unschedulable(one)] + new


def _scheduled(pod: Json) -> Json | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "PodScheduled"), None)


def _is_unschedulable(pod: Json) -> bool:
    found = _scheduled(pod)
    return found is not None and (found["status"], found.get("reason")) == ("False", "Unschedulable")


def _is_unprocessed(pod: Json) -> bool:
    found = _scheduled(pod)
    return found is None or (found["status"] == "False" and not found.get("reason"))
