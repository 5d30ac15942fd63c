"""Pods, and what metrics.k8s.io says of them and their nodes."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.tables.column import AGE, NAME, NONE, Column, Columns, age, at, since, wide
from kubetide.objects.base import Json
from kubetide.units.time import Instant, parse_rfc3339


def _pod(pod: Json, now: Instant) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    ready = sum(1 for container in statuses if container.get("ready"))
    total = len(spec.get("containers") or ())
    gates = spec.get("readinessGates") or ()
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or ()}
    passed = sum(1 for gate in gates if conditions.get(gate.get("conditionType")) == "True")
    return [
        pod["metadata"]["name"],
        f"{ready}/{total}",
        _phase(pod),
        _restarts(statuses, now),
        age(pod, now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def _phase(pod: Json) -> str:
    """Return the word of the Status column: why a container waits or ended says more than the phase."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    said = status.get("reason") or status.get("phase") or ""
    scheduled: Json = next((c for c in status.get("conditions") or () if c.get("type") == "PodScheduled"), {})
    if scheduled.get("reason") == "SchedulingGated":
        said = "SchedulingGated"
    initial = _initializing(status, len(spec.get("initContainers") or ()))
    if initial:
        said = initial
    else:
        running = False
        for container in reversed(status.get("containerStatuses") or ()):
            state = container.get("state") or {}
            waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
            if waiting.get("reason"):
                said = waiting["reason"]
            elif ended:
                said = ended.get("reason") or _exit(ended)
            elif container.get("ready") and "running" in state:
                running = True
        if said == "Completed" and running:
            ready = any(
                c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ()
            )
            said = "Running" if ready else "NotReady"
    if at(pod, "metadata", "deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in {"Succeeded", "Failed"}:
            return "Terminating"
    return said


def _initializing(status: Json, total: int) -> str:
    for done, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if container.get("started") and "running" in state:
            continue  # a sidecar
        if ended is not None:
            return f"Init:{ended.get('reason') or _exit(ended)}"
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{done}/{total}"
    return ""


def _exit(ended: Json) -> str:
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _restarts(statuses: Any, now: Instant) -> str:
    count = sum(container.get("restartCount") or 0 for container in statuses)
    ends = [at(container, "lastState", "terminated", "finishedAt") for container in statuses]
    ends = [end for end in ends if end]
    if count and ends:
        return f"{count} ({since(max(ends, key=parse_rfc3339), now)} ago)"
    return str(count)


def _node_metrics(obj: Json, _now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], *_usage(obj.get("usage")), obj.get("window") or ""]


def _pod_metrics(obj: Json, _now: Instant) -> list[Any]:
    containers = obj.get("containers") or ()
    return [obj["metadata"]["name"], len(containers), obj.get("window") or ""]


def _usage(usage: Json | None) -> list[str]:
    return [str((usage or {}).get(resource, "")) for resource in ("cpu", "memory")]


POD_TABLES = {
    "pods": Columns(
        (
            NAME,
            Column("Ready"),
            Column("Status"),
            Column("Restarts"),
            AGE,
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ),
        _pod,
    ),
    "nodes.metrics.k8s.io": Columns((NAME, Column("cpu"), Column("memory"), Column("window")), _node_metrics),
    "pods.metrics.k8s.io": Columns((NAME, Column("containers", "integer"), Column("window")), _pod_metrics),
}
