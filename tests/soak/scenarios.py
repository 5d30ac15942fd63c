"""Random scenarios: a cluster, what runs on it, and what goes wrong, all drawn from one seed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from kubetide.nodes.facts.nodes import NOMINATION_TAINT

Json = dict[str, Any]

TYPES = ("m5.large", "m5.xlarge", "c5.xlarge", "r5.large", "m5.2xlarge")
ZONES = ("zone-a", "zone-b", "zone-c")
EXPANDERS = ("random", "least-waste", "least-nodes", "most-pods", "least-cost", "least-nodes,least-waste")
FAULTS = ("stock-out", "boot-failure", "cloud-error", "watch-expiry", "api-error", "node-failure")
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


class Draw:
    """Draws from one seed, in the words of the generator."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return bool(self._numbers.random() < probability)

    def between(self, low: int, high: int) -> int:
        return int(self._numbers.integers(low, high + 1))

    def one_of(self, items: Any) -> Any:
        return items[int(self._numbers.integers(len(items)))]


def scenario_of(seed: int, minutes: int) -> Json:
    """Return the scenario of a seed, as its file would say it."""
    draw = Draw(seed)
    groups = _groups(draw)
    if Draw(seed + 1_000_000).chance(0.3):
        for group in groups:
            group["taints"] = [*group.get("taints", ()), {"key": NOMINATION_TAINT, "effect": "NoSchedule"}]
    services, manifests = _services(draw, groups)
    manifests += _others(draw, groups)
    ranks = Draw(seed + 2_000_000)
    if ranks.chance(0.3):
        manifests = [*_ranked(ranks, manifests), *manifests]
    flags: Json = {
        "expander": draw.one_of(EXPANDERS),
        "scale-down-unneeded-time": draw.one_of(("2m", "5m", "10m")),
        "scale-down-delay-after-add": draw.one_of(("2m", "5m", "10m")),
        "skip-nodes-with-local-storage": draw.chance(0.5),
        "balance-similar-node-groups": draw.chance(0.3),
        "replace-late-nodes": Draw(seed + 3_000_000).chance(0.5),
    }
    return {
        "name": f"soak-{seed}",
        "start": "2026-03-02T10:00:00Z",
        "duration": f"{minutes}m",
        "step": "30s",
        "scheduler": draw.one_of(("default", "default", "mostAllocated")),
        "pods": {"stop": draw.one_of(("1s-5s", "3s-30s"))},
        "nodeGroups": groups,
        "services": services,
        "manifests": [json.dumps(one, indent=1) for one in manifests],
        "flags": flags,
        "faults": _faults(draw, [one["name"] for one in groups], minutes),
    }


def may_create(given: Json) -> Json:
    """Return what of the scenario is other where the loop may create groups: fewer nodes in those that there are."""
    smaller = [{**one, "max": max(one["min"], one["initial"], 3)} for one in given["nodeGroups"]]
    flags = {"node-autoprovisioning-enabled": True, "max-autoprovisioned-node-group-count": 4}
    new = {"instanceTypes": list(TYPES), "zones": list(ZONES), "max": 4}
    return {"nodeGroups": smaller, "newGroups": new, "flags": {**given["flags"], **flags}}


def with_options(given: Json, seed: int) -> Json:
    """Return what of the scenario is other where the node loop has options beyond upstream; none in half of the worlds."""
    draw = Draw(seed * 59 + 29)
    if draw.chance(0.5):
        return {}
    drawn: Json = {
        "consolidation-enabled": draw.chance(0.7),
        "consolidation-budgets": draw.one_of(("nodes=10%", "nodes=100%", "nodes=1")),
        "consolidation-expected-stay": draw.one_of(("30m", "4h")),
        "steer-pods-to-fuller-nodes": draw.chance(0.5),
        "remember-demand": draw.one_of(("0s", "30m")),
        "buy-back-price": draw.one_of(("2m", "15m")),
        "stock-out-memory": draw.one_of(("0s", "10m")),
        "prompt-scale-up": draw.chance(0.5),
        "balance-scale-down": draw.chance(0.3),
        "recover-scale-ups": draw.chance(0.3),
        "salvo-scale-up": draw.chance(0.3),
        "parallel-scale-up": draw.chance(0.3),
        "max-nodes-total": draw.one_of((0, 0, 12)),
        "demand-sources": draw.one_of(("pending", "pending,intents")),
    }
    return {"flags": {**given["flags"], **drawn}}


def _groups(draw: Draw) -> list[Json]:
    groups = []
    for at in range(draw.between(2, 5)):
        most = draw.between(5, 12)
        least = draw.between(1, 2) if at == 0 else draw.between(0, 1)
        group: Json = {
            "name": f"g{at}",
            "instanceType": draw.one_of(TYPES),
            "min": least,
            "max": most,
            "initial": draw.between(max(least, 1), 3),
            "zone": draw.one_of(ZONES),
            "bootTime": draw.one_of(("30s-60s", "60s-90s", "30s-200s")),
            "labels": {"disk": draw.one_of(("ssd", "hdd"))},
        }
        if at and draw.chance(0.3):
            effect = draw.one_of(("NoSchedule", "PreferNoSchedule"))
            group["taints"] = [{"key": "pool", "value": "own", "effect": effect}]
        groups.append(group)
    return groups


def _services(draw: Draw, groups: list[Json]) -> tuple[list[Json], list[Json]]:
    services, manifests = [], []
    for at in range(draw.between(3, 8)):
        name = f"web{at}"
        replicas = draw.between(1, 4)
        manifests.append(_workload("Deployment", name, replicas, _pod(draw, name, groups)))
        services.append(_service(draw, name))
        if draw.chance(0.85):
            manifests.append(_hpa(draw, name))
        if draw.chance(0.5):
            manifests.append(_budget(draw, name))
    return services, manifests


def _service(draw: Draw, name: str) -> Json:
    return {
        "deployment": name,
        "cpuSecondsPerRequest": draw.one_of((0.01, 0.015, 0.03)),
        "baseCpu": "5m",
        "maxQueue": draw.one_of(("0s", "5s")),
        "load": {"trace": f"{name}.csv", "step": "1m"},
    }


def load_of(seed: int, name: str, minutes: int) -> str:
    """Return the trace of a service, requests/s minute by minute: levels that hold for a while, with noise."""
    draw = Draw(seed * 1000 + sum(map(ord, name)))
    usual = draw.between(5, 60)
    values: list[str] = []
    while len(values) <= minutes:
        level = usual * draw.one_of((0.1, 0.5, 1, 1, 1.5, 2, 4))
        values += [f"{level * draw.between(90, 110) / 100:.2f}" for _ in range(draw.between(4, 25))]
    return "\n".join(["requests", *values[: minutes + 1], ""])


def _pod(draw: Draw, name: str, groups: list[Json]) -> Json:
    """A pod spec with any fields that filters and scores read."""
    requests = {
        "cpu": f"{draw.one_of((100, 150, 250, 500))}m",
        "memory": f"{draw.one_of((128, 256, 512))}Mi",
    }
    if draw.chance(0.1):
        del requests["memory"]
    spec: Json = {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}
    mine = {"labelSelector": {"matchLabels": {"app": name}}}
    affinity: Json = {}
    if draw.chance(0.25):
        key = draw.one_of(("podAntiAffinity", "podAffinity"))
        term = {"topologyKey": draw.one_of((HOSTNAME, ZONE)), **mine}
        affinity[key] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]
        }
    elif draw.chance(0.2):
        term = {"topologyKey": HOSTNAME, **mine}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    elif draw.chance(0.15):
        term = {"topologyKey": ZONE, **mine}
        affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if draw.chance(0.2):
        has_disk = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": has_disk}]
        }
    if affinity:
        spec["affinity"] = affinity
    if draw.chance(0.3):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draw.between(1, 2),
                "topologyKey": draw.one_of((HOSTNAME, ZONE)),
                "whenUnsatisfiable": draw.one_of(("DoNotSchedule", "ScheduleAnyway")),
                **mine,
            }
        ]
    if draw.chance(0.2):
        spec["nodeSelector"] = {"disk": draw.one_of(groups)["labels"]["disk"]}
    if draw.chance(0.4):
        spec["tolerations"] = [{"key": "pool", "operator": "Exists"}]
    if draw.chance(0.15):
        spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    return spec


def _others(draw: Draw, groups: list[Json]) -> list[Json]:
    """StatefulSets with claims, DaemonSets, CronJobs, Deployments without load."""
    found: list[Json] = []
    if draw.chance(0.5):
        mode = draw.one_of(("WaitForFirstConsumer", "Immediate"))
        provisioner = draw.one_of(("csi.example.com", "example.com/disks"))
        found.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "disks"},
                "provisioner": provisioner,
                "volumeBindingMode": mode,
            }
        )
        spec = _pod(draw, "store", groups)
        spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        found.append(_stateful_set(draw, spec))
    if draw.chance(0.6):
        tolerations = [{"operator": "Exists"}]
        agent = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
        template = {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [agent], "tolerations": tolerations},
        }
        found.append(_object("apps/v1", "DaemonSet", "agent", selector=_selector("agent"), template=template))
    if draw.chance(0.5):
        found.append(_cron_job(draw, groups))
    if draw.chance(0.4):
        found.append(_workload("Deployment", "idle", draw.between(1, 6), _pod(draw, "idle", groups)))
        found.append(_budget(draw, "idle"))
    return found


def _ranked(draw: Draw, manifests: list[Json]) -> list[Json]:
    """Give some workloads a priority, and return the classes of these, and placeholders that others may take the place of."""
    values = {"reserve": draw.one_of((-10, -20)), "low": -5, "high": 1000}
    for one in manifests:
        if one["kind"] in {"Deployment", "StatefulSet"} and draw.chance(0.5):
            one["spec"]["template"]["spec"]["priorityClassName"] = draw.one_of(("low", "high"))
    requests = {"cpu": f"{draw.one_of((500, 1000, 1800))}m", "memory": "256Mi"}
    spec = {
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
        "priorityClassName": "reserve",
    }
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in values.items()
    ]
    return [*classes, _workload("Deployment", "reserve", draw.between(1, 4), spec)]


def _stateful_set(draw: Draw, spec: Json) -> Json:
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    made = _workload("StatefulSet", "store", draw.between(1, 4), spec)
    made["spec"] |= {
        "serviceName": "store",
        "podManagementPolicy": draw.one_of(("OrderedReady", "Parallel")),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return made


def _cron_job(draw: Draw, groups: list[Json]) -> Json:
    spec = _pod(draw, "batch", groups)
    template = {"metadata": {"labels": {"app": "batch"}}, "spec": {**spec, "restartPolicy": "Never"}}
    if draw.chance(0.5):
        template["metadata"]["annotations"] = {"kubetide.dev/run-duration": "4m"}
    job = {"spec": {"parallelism": draw.between(1, 4), "completions": 4, "template": template}}
    schedule = draw.one_of(("*/5 * * * *", "*/15 * * * *", "7 * * * *"))
    return _object("batch/v1", "CronJob", "batch", schedule=schedule, jobTemplate=job)


def _workload(kind: str, name: str, replicas: int, spec: Json) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return _object("apps/v1", kind, name, replicas=replicas, selector=_selector(name), template=template)


def _hpa(draw: Draw, name: str) -> Json:
    target = {"type": "Utilization", "averageUtilization": draw.one_of((50, 70, 90))}
    return _object(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        name,
        scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        minReplicas=draw.between(1, 3),
        maxReplicas=draw.between(6, 25),
        metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    )


def _budget(draw: Draw, name: str) -> Json:
    bound = draw.one_of(({"maxUnavailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": "30%"}))
    return _object("policy/v1", "PodDisruptionBudget", name, selector=_selector(name), **bound)


def _faults(draw: Draw, groups: list[str], minutes: int) -> list[Json]:
    faults = []
    for kind in FAULTS:
        if not draw.chance(0.35):
            continue
        start = draw.between(2, minutes - 40)
        fault: Json = {"kind": kind, "start": f"{start}m", "end": f"{start + draw.between(3, 35)}m"}
        if kind in {"boot-failure", "cloud-error", "api-error"}:
            fault["probability"] = draw.one_of((0.1, 0.3, 0.7)) if kind != "api-error" else 0.1
        if kind not in {"watch-expiry", "api-error"} and draw.chance(0.6):
            fault["group"] = draw.one_of(groups)
        faults.append(fault)
    return faults


def _object(version: str, kind: str, name: str, **spec: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _selector(name: str) -> Json:
    return {"matchLabels": {"app": name}}
