"""What a kubelet writes into the status of a pod and of its node."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Container, Pod, pod_condition
from kubetide.units.seeds import uuid_of
from kubetide.units.time import Instant, format_rfc3339

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"

_READINESS_CONDITIONS = ("Ready", "ContainersReady")
_KUBELET_CONDITIONS = (*_READINESS_CONDITIONS, "PodReadyToStartContainers", "Initialized")


@dataclass(frozen=True)
class Lives:
    """What is known about the containers of a running pod.

    Attributes:
        started: When they were last started.
        restarts: How often each was started again, by name; a name that is missing never was.
        ended: How each last ended (``lastState``), by name.
    """

    started: Instant
    restarts: Mapping[str, int]
    ended: Mapping[str, Json] = field(default_factory=dict)


_OF_HEALTH = {"False": NOT_READY_TAINT, "Unknown": UNREACHABLE_TAINT}
"""By the status of a node's Ready condition, the key of its taints."""


def running_status(
    pod: Pod, *, pod_ip: str, host_ip: str, accepted: Instant, started: Instant, ready: bool
) -> Json:
    """The status of a pod whose containers have just started.

    Args:
        pod: The pod as it is, bound to a node.
        pod_ip: Its address.
        host_ip: That of its node, empty where the node has none.
        accepted: When the kubelet took it on: ``startTime``.
        started: When the containers started.
        ready: Whether they are ready at once.
    Source: Pod lifecycle page and API reference of PodStatus (v1.36).
    """
    taken, at = format_rfc3339(accepted), format_rfc3339(started)
    init = pod.spec.init_containers or ()
    ordinary = any(c.restart_policy != "Always" for c in init)
    lives = Lives(started, {})
    status: Json = {
        "phase": "Running",
        "startTime": taken,
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "conditions": [
            *_without(pod, _KUBELET_CONDITIONS),
            _condition("PodReadyToStartContainers", "True", taken),
            _condition("Initialized", "True", at if ordinary else taken),
            *_readiness(pod, ready=ready, at=at),
        ],
        "containerStatuses": [_running(pod, c, lives, ready=ready) for c in pod.spec.containers or ()],
    }
    if host_ip:
        status["hostIP"] = host_ip
        status["hostIPs"] = [{"ip": host_ip}]
    if init:
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}}
        status["initContainerStatuses"] = [
            _running(pod, c, lives, ready=True)
            if c.restart_policy == "Always"
            else _container(pod, c, ready=True, restarts=0, state=done)
            for c in init
        ]
    return status


def ready_status(pod: Pod, lives: Lives, *, now: Instant) -> Json:
    """The change of status that makes a running pod ready."""
    return {
        "conditions": [
            *_without(pod, _READINESS_CONDITIONS),
            *_readiness(pod, ready=True, at=format_rfc3339(now)),
        ],
        "containerStatuses": [_running(pod, c, lives, ready=True) for c in pod.spec.containers or ()],
    }


def termination(lives: Lives, *, reason: str, exit_code: int, now: Instant) -> Json:
    """How a container ended: as ``state``, and as ``lastState`` of the one that follows."""
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": format_rfc3339(lives.started),
            "finishedAt": format_rfc3339(now),
        }
    }


def ends_told(pod: Pod) -> dict[str, Json]:
    """Return how each container last ended, as the pod's status says; without those that never did."""
    return {
        one.name: {"terminated": msgspec.to_builtins(one.last_state.terminated)}
        for one in pod.status.container_statuses or ()
        if one.last_state is not None and one.last_state.terminated is not None
    }


def stopped_status(
    pod: Pod, lives: Lives, *, container: str, state: Json, since: Instant, last: Json | None = None
) -> Json:
    """The change of status while one container of a running pod does not run, or runs but is not ready.

    The pod stays Running and is not ready.

    Args:
        state: What the container is: terminated, waiting or running.
        since: When it became so.
        last: How it ended before; None for what ``lives`` knows.
    """
    statuses = []
    for one in pod.spec.containers or ():
        status = _running(pod, one, lives, ready=one.name != container)
        if one.name == container:
            status |= {"state": state, "started": "running" in state}
            if last is not None:
                status["lastState"] = last
        statuses.append(status)
    return {
        "conditions": [
            *_without(pod, _READINESS_CONDITIONS),
            *_readiness(pod, ready=False, at=format_rfc3339(since), unready=container),
        ],
        "containerStatuses": statuses,
    }


def finished_status(pod: Pod, lives: Lives, *, exit_code: int, now: Instant) -> Json:
    """The change of status when all containers have ended and none is to be started again.

    The pod has Succeeded with exit code 0, else Failed; every container ends with that code.
    """
    started, at = format_rfc3339(lives.started), format_rfc3339(now)
    ended = {
        "terminated": {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": started,
            "finishedAt": at,
        }
    }
    reason = "PodFailed" if exit_code else "PodCompleted"
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": [
            *_without(pod, _READINESS_CONDITIONS),
            *({**_condition(kind, "False", at), "reason": reason} for kind in ("ContainersReady", "Ready")),
        ],
        "containerStatuses": [
            _container(pod, c, ready=False, restarts=lives.restarts.get(c.name, 0), state=ended)
            for c in pod.spec.containers or ()
        ],
    }


def unready_condition_status(pod: Pod, now: Instant) -> Json:
    """The change of status when the control plane loses a pod's node: only the Ready condition falls.

    Source: node lifecycle controller v1.36, MarkPodsNotReady: the condition's reason stays as it was.
    """
    ready = pod_condition(pod, "Ready")
    before: Json = {} if ready is None else msgspec.to_builtins(ready)
    fallen = {**before, "type": "Ready", "status": "False", "lastTransitionTime": format_rfc3339(now)}
    return {"conditions": [*_without(pod, ("Ready",)), fallen]}


def node_heartbeat(conditions: tuple[Condition, ...], now: Instant) -> list[Json]:
    """The node's conditions with a new heartbeat time."""
    at = format_rfc3339(now)
    return [{**msgspec.to_builtins(c), "lastHeartbeatTime": at} for c in conditions]


def node_ready_conditions(conditions: tuple[Condition, ...], status: str, now: Instant) -> list[Json]:
    """The node's conditions with Ready as given: ``True`` by the kubelet, ``False`` by it, ``Unknown`` without it."""
    at = format_rfc3339(now)
    reason, message = {
        "True": ("KubeletReady", "kubelet is posting ready status"),
        "False": ("KubeletNotReady", "container runtime is down"),
        "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    }[status]
    new: list[Json] = []
    for condition in conditions:
        raw: Json = msgspec.to_builtins(condition)
        if condition.type == "Ready":
            moved = condition.status != status
            raw |= {"status": status, "reason": reason, "message": message}
            if moved:
                raw["lastTransitionTime"] = at
        elif status == "Unknown":
            raw |= {"status": "Unknown", "reason": reason, "message": message}
        elif condition.status == "Unknown":
            raw |= {"status": "False", "reason": f"KubeletHasNo{condition.type}", "message": ""}
        if status != "Unknown":
            raw["lastHeartbeatTime"] = at
        new.append(raw)
    return new


def node_taints(taints: list[Json], status: str, now: Instant) -> list[Json]:
    """Return the node's taints for that Ready status; unrelated taints stay.

    Source: node lifecycle controller v1.36: not-ready for False, unreachable for Unknown, with NoSchedule. That with
    NoExecute follows (``with_eviction``).
    """
    result = [taint for taint in taints if taint.get("key") not in _OF_HEALTH.values()]
    if status in _OF_HEALTH:
        result.append(_taint(status, "NoSchedule", now))
    return result


def with_eviction(status: str, evicts: bool, taints: list[Json], now: Instant) -> list[Json]:
    """Return the node's taints with that which evicts pods at this Ready status, or without it."""
    new = _taint(status, "NoExecute", now)
    known = [
        taint for taint in taints if (taint.get("key"), taint.get("effect")) == (new["key"], "NoExecute")
    ]
    if bool(known) == evicts:
        return taints
    return [*taints, new] if evicts else [taint for taint in taints if taint not in known]


def _taint(status: str, effect: str, now: Instant) -> Json:
    return {"key": _OF_HEALTH[status], "effect": effect, "timeAdded": format_rfc3339(now)}


def _without(pod: Pod, kinds: Collection[str]) -> list[Json]:
    """The pod's conditions but for these."""
    return [msgspec.to_builtins(c) for c in pod.status.conditions or () if c.type not in kinds]


def _readiness(pod: Pod, *, ready: bool, at: str, unready: str = "") -> list[Json]:
    if ready:
        return [_condition("ContainersReady", "True", at), _condition("Ready", "True", at)]
    names = [unready] if unready else [c.name for c in pod.spec.containers or ()]
    message = f"containers with unready status: [{' '.join(names)}]"
    return [
        {**_condition(kind, "False", at), "reason": "ContainersNotReady", "message": message}
        for kind in ("ContainersReady", "Ready")
    ]


def _condition(kind: str, status: str, at: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": at}


def _running(pod: Pod, container: Container, lives: Lives, *, ready: bool) -> Json:
    state = {"running": {"startedAt": format_rfc3339(lives.started)}}
    status = _container(
        pod, container, ready=ready, restarts=lives.restarts.get(container.name, 0), state=state
    )
    return status | {"lastState": lives.ended.get(container.name, {})}


def _container(pod: Pod, container: Container, *, ready: bool, restarts: int, state: dict[str, Any]) -> Json:
    identity = uuid_of(0, pod.metadata.uid, container.name, restarts).replace("-", "")
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": f"containerd://{identity}",
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    }
