"""Objects of timelines, as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.timelines.stages import NOT_READY

from kubetide.embedded.kubelet.endings import EXIT_CODE
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, Kind
from kubetide.testing import builders


def node(
    name: str, cpu: str = "4", *, ready: bool = True, cordoned: bool = False, taints: Sequence[Json] = ()
) -> tuple[Kind[Any], Json]:
    """Return a node and its kind; one that is not ready has the taint that its kubelet and the API server give it."""
    all_taints = [*taints] if ready else [{"key": NOT_READY, "effect": "NoSchedule"}, *taints]
    extra: Json = {"spec": {"taints": all_taints}} if all_taints else {}
    if cordoned:
        extra = {"spec": {"unschedulable": True}}
    return NODES, builders.node(name, cpu=cpu, ready=ready, extra=extra)


def waiting_pod(name: str, cpu: str = "2", *, grace: int = 30, **spec: Any) -> Json:
    """Return a pod without an owner."""
    return builders.pod(
        name, cpu=cpu, extra={"spec": {"terminationGracePeriodSeconds": grace, **spec}}, labels={"app": name}
    )


def stateful_set(name: str, replicas: int) -> Json:
    """Return a StatefulSet that makes one pod after another."""
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(name),
        },
    }


def daemon_set(name: str) -> Json:
    """Return a DaemonSet for all nodes."""
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": _template(name)},
    }


def job(name: str, *, exit_code: int = 0, **spec: Any) -> Json:
    """Return a Job whose pods work for 2 s and end with that code."""
    template = _template(name)
    template["metadata"]["annotations"] = {EXIT_CODE: str(exit_code)}
    template["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def _template(name: str) -> Json:
    return {"metadata": {"labels": {"app": name}}, "spec": builders.pod_spec(cpu="100m")}
