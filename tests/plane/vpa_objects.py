"""VPA objects drawn from a seed, their targets of every kind, and their pods, put on a plane whose controllers rest.

So nothing but the VPA programs and the test changes anything. Pods run as their statuses say.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, NamedTuple

import msgspec

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    VPAS,
    Kind,
)
from kubetide.objects.pod import Container, Pod
from kubetide.testing import builders
from kubetide.units.time import Instant, format_rfc3339, hours, minutes

Json = dict[str, Any]

HOMES = ("vpa-a", "vpa-b", "vpa-c", "vpa-d")
_CONTAINERS = ("main", "proxy", "logger")
_KINDS = (
    *((DEPLOYMENTS,) * 8),
    *((STATEFUL_SETS,) * 3),
    *((DAEMON_SETS,) * 2),
    *((REPLICA_SETS,) * 2),
    REPLICATION_CONTROLLERS,
    JOBS,
    CRON_JOBS,
)
_MODES = ("Off", "Initial", "Recreate", "Recreate", "Auto", "InPlaceOrRecreate", "InPlaceOrRecreate", None)
_AT_ONCE = 16
NODE = "n1"
_TEXTS = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
_NODE_INFO = dict.fromkeys(_TEXTS, "") | {
    "kubeletVersion": "v1.36.2",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


class Workload(NamedTuple):
    """The subject of a VPA.

    Attributes:
        kind, name, home: Of the target.
        containers: Of each pod: name and resources, of which a pod's own differ a little.
        pods: How many there are.
    """

    kind: Kind[Any]
    name: str
    home: str
    containers: tuple[tuple[str, Json], ...]
    pods: int


def draw_workload(rng: Random, number: int) -> Workload:
    """Return a workload of one to three containers; some have no request of a resource, some have limits."""
    kind = rng.choice(_KINDS)
    count = rng.choice((1, 1, 2, 3))
    return Workload(
        kind,
        f"w{number:03}",
        rng.choice(HOMES),
        tuple((name, _resources(rng)) for name in _CONTAINERS[:count]),
        1 if kind is CRON_JOBS else rng.choice((1, 2, 3, 4, 5)),
    )


def _resources(rng: Random) -> Json:
    cpu, memory = rng.randint(10, 2000), rng.randint(50, 3000)
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    limits = {"cpu": f"{cpu * rng.choice((1, 2, 3))}m", "memory": f"{memory * rng.choice((1, 1, 2))}Mi"}
    for amounts in (requests, limits):
        for name in ("cpu", "memory"):
            if rng.random() < (0.12 if amounts is requests else 0.5):
                del amounts[name]
    # The API server fills missing requests in from the limits.
    return {"requests": limits | requests, "limits": limits}


def draw_vpa(rng: Random, number: int, workload: Workload) -> Json:
    """Return a VPA object of it; one in twelve names a target that is not there, or the wrong one."""
    name = workload.name
    if rng.random() < 0.05:
        name = "nobody"
    ref = {"apiVersion": workload.kind.api_version, "kind": workload.kind.kind, "name": name}
    if workload.kind is DEPLOYMENTS and rng.random() < 0.05:
        ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-1"}
    spec: Json = {"targetRef": ref}
    metadata: Json = {"name": f"v{number:03}"}
    mode = rng.choice(_MODES)
    if mode is not None:
        spec["updatePolicy"] = {"updateMode": mode} | _update_policy(rng)
    if rng.random() < 0.6:
        spec["resourcePolicy"] = {"containerPolicies": _policies(rng, workload)}
    if rng.random() < 0.05:
        spec["recommenders"] = [{"name": rng.choice(("default", "other"))}]
    if rng.random() < 0.1:
        metadata["annotations"] = {"vpa-post-processor.kubernetes.io/main_integerCPU": "true"}
    return {"metadata": metadata, "spec": spec}


def _update_policy(rng: Random) -> Json:
    policy: Json = {}
    if rng.random() < 0.5:
        policy["minReplicas"] = rng.choice((1, 1, 2, 3))
    if rng.random() < 0.15:
        change = rng.choice(("TargetHigherThanRequests", "TargetLowerThanRequests"))
        resources = rng.choice((["cpu"], ["memory"], ["cpu", "memory"]))
        policy["evictionRequirements"] = [{"resources": resources, "changeRequirement": change}]
    return policy


def _policies(rng: Random, workload: Workload) -> list[Json]:
    names = [name for name, _ in workload.containers if rng.random() < 0.6]
    return [_policy(rng, name) for name in (*names, *(("*",) if rng.random() < 0.4 else ()))]


def _policy(rng: Random, container: str) -> Json:
    policy: Json = {"containerName": container}
    if rng.random() < 0.15:
        return policy | {"mode": "Off"}
    if rng.random() < 0.5:
        policy["minAllowed"] = {"cpu": f"{rng.randint(10, 300)}m", "memory": f"{rng.randint(20, 400)}Mi"}
    if rng.random() < 0.5:
        policy["maxAllowed"] = {"cpu": f"{rng.randint(300, 3000)}m", "memory": f"{rng.randint(400, 2000)}Mi"}
    if rng.random() < 0.2:
        policy["controlledResources"] = rng.choice((["cpu"], ["memory"], ["cpu", "memory"]))
    if rng.random() < 0.4:
        policy["controlledValues"] = rng.choice(("RequestsOnly", "RequestsAndLimits"))
    if rng.random() < 0.2:
        policy["oomBumpUpRatio"] = rng.choice((1, "1.5", 2))
    if rng.random() < 0.1:
        policy["memoryAggregationIntervalSeconds"] = rng.choice((300, 1200))
    return policy


def _double(vpa: Json, first: Json) -> Json:
    """Return a VPA object that recommends the same as the first: of two policies any holds for upstream's series of quality."""
    vpa["metadata"]["annotations"] = first["metadata"].get("annotations") or {}
    vpa["spec"]["resourcePolicy"] = first["spec"].get("resourcePolicy") or {}
    return vpa


async def put_all(cluster: HttpCluster, rng: Random, count: int, now: Instant) -> None:
    """Create that many workloads, their pods, and a VPA object of each; one in ten has a second one."""
    for home in HOMES:
        await cluster.create(NAMESPACES, builders.namespace(home))
    # All pods are on it; the API server looks whether a resize fits.
    node = builders.node(NODE, cpu="4000", memory="20Ti", extra={"status": {"nodeInfo": _NODE_INFO}})
    await cluster.create(NODES, node)
    await cluster.patch(NODES, NODE, {"status": node["status"]}, subresource="status")
    workloads = [draw_workload(rng, number) for number in range(count)]
    vpas = [draw_vpa(rng, number, one) for number, one in enumerate(workloads)]
    doubles = [
        (one, _double(draw_vpa(rng, 900 + number, one), vpas[number]))
        for number, one in enumerate(workloads)
        if rng.random() < 0.1
    ]
    seeds = [rng.random() for _ in workloads]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def put(workload: Workload, vpa: Json, seed: float) -> None:
        async with gate:
            await _put_workload(cluster, Random(seed), workload, now)
            await cluster.create(VPAS, vpa, namespace=workload.home)

    async with asyncio.TaskGroup() as tasks:
        for one, vpa, seed in zip(workloads, vpas, seeds, strict=True):
            tasks.create_task(put(one, vpa, seed))
    for workload, vpa in doubles:
        await cluster.create(VPAS, vpa, namespace=workload.home)
    # After the pods, which it would have changed.
    bounds = {"type": "Container", "min": {"memory": "100Mi"}, "max": {"cpu": "1800m", "memory": "2500Mi"}}
    body = {"metadata": {"name": "bounds"}, "spec": {"limits": [bounds]}}
    await cluster.create(LIMIT_RANGES, body, namespace=HOMES[0])


async def _put_workload(cluster: HttpCluster, rng: Random, workload: Workload, now: Instant) -> None:
    where = {"namespace": workload.home}
    owner = await cluster.create(workload.kind, _body(workload), **where)
    if workload.kind in {DEPLOYMENTS, CRON_JOBS}:
        child = REPLICA_SETS if workload.kind is DEPLOYMENTS else JOBS
        body = _body(workload._replace(kind=child))
        body["metadata"] = {
            "name": f"{workload.name}-1",
            "ownerReferences": [builders.owner_reference(owner, controller=True)],
        }
        owner = await cluster.create(child, body, **where)
    if workload.kind is DAEMON_SETS:
        counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberMisscheduled")
        status = dict.fromkeys(counts, workload.pods) | {"numberMisscheduled": 0}
        await cluster.patch(DAEMON_SETS, workload.name, {"status": status}, subresource="status", **where)
    for number in range(workload.pods):
        name = f"{workload.name}-{number}"
        body = pod_of(rng, workload)
        body["metadata"] |= {
            "name": name,
            "ownerReferences": [builders.owner_reference(owner, controller=True)],
        }
        body["spec"]["nodeName"] = NODE
        pod = await cluster.create(PODS, body, **where)
        await cluster.patch(PODS, name, {"status": _status(rng, pod, now)}, subresource="status", **where)


def _body(workload: Workload) -> Json:
    labels = {"app": workload.name}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(workload.containers)}
    match workload.kind.kind:
        case "Job":
            template["spec"]["restartPolicy"] = "Never"
            spec: Json = {"parallelism": workload.pods, "template": template}
        case "CronJob":
            template["spec"]["restartPolicy"] = "Never"
            spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}
        case "ReplicationController":
            spec = {"replicas": workload.pods, "selector": labels, "template": template}
        case "DaemonSet":
            spec = {"selector": {"matchLabels": labels}, "template": template}
        case _:
            spec = {
                "replicas": workload.pods,
                "selector": {"matchLabels": labels},
                "template": template,
            }
            if workload.kind is STATEFUL_SETS:
                spec["serviceName"] = workload.name
    return {"metadata": {"name": workload.name}, "spec": spec}


def _pod_spec(containers: tuple[tuple[str, Json], ...]) -> Json:
    return {
        "containers": [
            {"name": name, "image": "registry.test/app:1", "resources": resources}
            for name, resources in containers
        ]
    }


def pod_of(rng: Random, workload: Workload) -> Json:
    """Return a pod of it. No two request quite the same, so that there is one order in which they are to be changed."""
    spec = _pod_spec(tuple((name, _nearly(rng, one)) for name, one in workload.containers))
    if workload.kind in {JOBS, CRON_JOBS}:
        spec["restartPolicy"] = "Never"
    return {"metadata": {"labels": {"app": workload.name}}, "spec": spec}


def _nearly(rng: Random, resources: Json) -> Json:
    """Raise CPU by up to 40 m and memory by up to 40 Mi, limits too."""
    more = {"cpu": (rng.randint(0, 40), "m"), "memory": (rng.randint(0, 40), "Mi")}
    return {
        which: {
            name: f"{int(text.removesuffix(more[name][1])) + more[name][0]}{more[name][1]}"
            for name, text in amounts.items()
        }
        for which, amounts in resources.items()
    }


def _status(rng: Random, pod: Pod, now: Instant) -> Json:
    started = format_rfc3339(Instant(now - rng.choice((minutes(5), hours(1), hours(13), hours(40)))))
    return {
        "phase": "Running",
        "startTime": started,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
        "containerStatuses": [_container(one, started) for one in pod.spec.containers or ()],
    }


def _container(container: Container, started: str) -> Json:
    """Return the status of a container that runs, with what it has: such a pod can be resized."""
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": started}},
        "resources": msgspec.to_builtins(container.resources),
    }


def killed(pod: Pod, container: str, at: Instant) -> Json:
    """Return the status of a pod with one container that was just killed for its memory, and runs again."""
    last = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": format_rfc3339(Instant(at - minutes(3))),
        "finishedAt": format_rfc3339(at),
    }
    statuses = [_container(one, pod.status.start_time or "") for one in pod.spec.containers or ()]
    for one in statuses:
        if one["name"] == container:
            one |= {"restartCount": 1, "lastState": {"terminated": last}}
    return {"containerStatuses": statuses}
